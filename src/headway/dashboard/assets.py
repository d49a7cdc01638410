"""The files that pages load: the dashboard's own, and the report's style and script."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_FROM_REPORT = ("report.css", "report.js")


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    content: bytes
    media_type: str
    etag: str


def load_assets() -> dict[str, Asset]:
    """Every asset by its name."""
    own = resources.files("headway.dashboard").joinpath("assets")
    report = resources.files("headway.report").joinpath("assets")
    files = [each for each in own.iterdir() if _suffix(each.name) in _TYPES]
    files += [report.joinpath(name) for name in _FROM_REPORT]
    return {file.name: _asset(file.name, file.read_bytes()) for file in files}


def _asset(name: str, content: bytes) -> Asset:
    etag = '"' + hashlib.sha256(content).hexdigest()[:20] + '"'
    return Asset(content, f"{_TYPES[_suffix(name)]}; charset=utf-8", etag)


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]

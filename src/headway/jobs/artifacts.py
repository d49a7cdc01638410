"""Files that a job leaves behind for its users."""

from __future__ import annotations

import mimetypes
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import msgspec

from headway.core.errors import ConfigError

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._ +=@-]{0,199}\Z")
MAX_DEPTH = 5


class Artifact(msgspec.Struct, frozen=True):
    """A complete file in the attempt's artifact directory.

    Attributes:
        name: Relative path with `/`, as the job gave it.
        media_type: For the download's Content-Type.
    """

    name: str
    media_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ArtifactDir:
    """Where one attempt's artifacts are written."""

    path: Path
    limit_bytes: int

    def add(
        self,
        name: str,
        source: Path | str | bytes,
        media_type: str | None,
        share: bool = False,
    ) -> Artifact:
        """Write `source` (a file to copy or to share, or bytes) as `name`, whole or not at all.

        Raises:
            ConfigError: the name is not allowed, the file is missing or too big.
        """
        target = self.path / check_name(name)
        size = _size(name, source)
        if size > self.limit_bytes:
            raise ConfigError(
                f"artifact {name} has {size} bytes; the limit is {self.limit_bytes} bytes"
            )
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
        try:
            if isinstance(source, bytes):
                partial.write_bytes(source)
            elif not (share and _linked(source, partial)):
                shutil.copyfile(source, partial)
            size = partial.stat().st_size
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
        guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Artifact(name, media_type or guessed, size)


def check_name(name: str) -> str:
    """Refuse a name that could leave the directory or hide in it (path traversal).

    Raises:
        ConfigError: saying which names are allowed.
    """
    segments = name.split("/")
    if len(segments) > MAX_DEPTH or not all(_SEGMENT.match(segment) for segment in segments):
        raise ConfigError(
            f"{name!r} is no name for an artifact: use letters, digits and ._ +=@- in up to "
            f"{MAX_DEPTH} parts separated by '/', each beginning with a letter, digit or '_'"
        )
    return name


def _linked(source: Path | str, target: Path) -> bool:
    """Give the file a second name; False where the file system cannot."""
    try:
        os.link(source, target, follow_symlinks=True)
    except OSError:
        return False
    return True


def _size(name: str, source: Path | str | bytes) -> int:
    if isinstance(source, bytes):
        return len(source)
    path = Path(source)
    if not path.is_file():
        raise ConfigError(f"artifact {name}: there is no file {path}")
    return path.stat().st_size

"""Durations as people write them: `500ms`, `1.5s`, `2m`, `1h`, or bare seconds."""

from __future__ import annotations

import re

from headway.core.errors import ConfigError

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_FORM = re.compile(r"^\s*(\d+(?:\.\d+)?|\.\d+)\s*(us|ms|s|min|m|h|)\s*$")


def parse_duration_s(text: str) -> float:
    """Read a duration as seconds.

    Raises:
        ConfigError: the text is not a number with an optional unit.
    """
    match = _FORM.match(text)
    if match is None:
        raise ConfigError(f"{text!r} is not a duration; write for example 500ms, 1.5s, 2m or 1h")
    return float(match[1]) * _SECONDS[match[2]]

"""Percentages as people write them: `5%`, or the share `0.05`."""

from __future__ import annotations

import math
import re

from headway.core.errors import ConfigError

_FORM = re.compile(r"^\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*$")


def parse_share(name: str, text: str, *, below: float = math.inf, zero: bool = False) -> float:
    """Read a share.

    Args:
        name: The option, for the error.
        text: What was given.
        below: The share must be less than this.
        zero: Whether it may be 0.

    Raises:
        ConfigError: it is no share, or out of range.
    """
    match = _FORM.match(text)
    if match and not match[2] and float(match[1]) >= 1:
        # `--max-regression 5` would let five times as slow pass.
        raise ConfigError(f"{name}: {text!r} is no share; write {text.strip()}% or one below 1")
    share = float(match[1]) / (100 if match[2] else 1) if match else math.nan
    if not (0 <= share < below) or (share == 0 and not zero):
        raise ConfigError(f"{name}: {text!r} is not a percentage that fits; write for example 5%")
    return share

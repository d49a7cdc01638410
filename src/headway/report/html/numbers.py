"""Numbers as people read them in the HTML report."""

from __future__ import annotations

import math
from datetime import UTC, datetime

MISSING = "–"


def ms(seconds: float | str | None) -> str:
    """Seconds as milliseconds, with about three significant digits; `∞` for a failure."""
    if seconds is None:
        return MISSING
    value = float(seconds) * 1000
    if math.isinf(value):
        return "∞"
    return plain(value)


def plain(value: float | None) -> str:
    """About three significant digits, thousands apart, a dash for nothing."""
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 100 or value == 0:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.995 else f"{value:.3f}"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    if share is None:
        return MISSING
    return f"{share * 100:.1f}%" if 0 < share < 0.9995 else f"{share * 100:.0f}%"


def moment(iso: str) -> str:
    """An ISO 8601 time to the second, in UTC; as it is, where it is none."""
    try:
        at = datetime.fromisoformat(iso).astimezone(UTC)
    except ValueError:
        return iso
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


def mebibytes(size_bytes: int) -> str:
    """A size in MiB."""
    return f"{size_bytes / (1 << 20):,.0f} MiB"

"""Reads times of arrival as whole nanoseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, DecimalException
from typing import Any

from headway.core.clock import NS_PER_S
from headway.load.inputs.problems import RowError

_LIMIT_NS = 1 << 62
_ISO = re.compile(r"^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:?\d\d)?$")


def ns_from_number(value: Any, unit_ns: int) -> int:
    """A number of units as nanoseconds.

    Raises:
        RowError: it is not a number, or absurdly far away.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"the timestamp is not a number: {str(value)[:40]!r}")
    if not abs(value) < _LIMIT_NS / unit_ns:
        raise RowError("the timestamp is out of range")
    return round(value * unit_ns)


def ns_from_text(text: str) -> int:
    """Seconds (`12.5`) or ISO 8601 (`2023-11-16 18:15:46.6805900`) as nanoseconds.

    A time without a zone is taken as UTC: only differences matter.

    Raises:
        RowError: it is neither.
    """
    compact = text.strip()
    iso = _ISO.match(compact)
    if iso:
        return _ns_from_iso(iso, compact)
    try:
        # Decimal, because a float holds an epoch time in seconds to 0.2 µs only.
        seconds = Decimal(compact)
        near = abs(seconds) < _LIMIT_NS  # before it is multiplied: 1e999999 would take for ever
    except DecimalException as error:
        raise RowError(
            f"not a timestamp: {compact[:40]!r} (seconds, or 2023-11-16 18:15:46.68)"
        ) from error
    return _in_range(round(seconds * NS_PER_S) if near else _LIMIT_NS)


def _ns_from_iso(match: re.Match[str], text: str) -> int:
    day, clock, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{zone or ''}")
    except ValueError as error:
        raise RowError(f"not a timestamp: {text[:40]!r} ({error})") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    nanoseconds = round(moment.timestamp()) * NS_PER_S + int((fraction or "0").ljust(9, "0"))
    return _in_range(nanoseconds)


def _in_range(nanoseconds: int) -> int:
    if not abs(nanoseconds) < _LIMIT_NS:
        raise RowError("the timestamp is out of range")
    return nanoseconds

"""The only place that reads time.

Monotonic nanoseconds order and pace everything inside a host; UTC is for what people and stores
read. Code that decides by time takes a `Clock`, so that tests can drive it; the wire's hot path
calls `monotonic_ns` directly, because it only stamps and never decides.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

monotonic_ns = time.monotonic_ns
"""Nanoseconds on the host's monotonic clock, comparable between processes of one host (Linux)."""


class Clock(Protocol):
    """What code that decides by time is given."""

    def monotonic_ns(self) -> int:
        """Nanoseconds on the host's monotonic clock."""
        ...

    def now(self) -> datetime:
        """The current UTC time, with its zone."""
        ...


class SystemClock:
    """The host's clocks."""

    # Not a method around it: pacing and stamping read it several times a request.
    monotonic_ns = staticmethod(time.monotonic_ns)

    def now(self) -> datetime:
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is told to move; for tests."""

    def __init__(self, now: datetime, monotonic_ns: int = 0) -> None:
        self._now = now
        self._monotonic_ns = monotonic_ns

    def monotonic_ns(self) -> int:
        return self._monotonic_ns

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        """Move both clocks forward by `seconds` (>= 0)."""
        if seconds < 0:
            raise ValueError("a clock does not go back; advance() takes seconds >= 0")
        self._now += timedelta(seconds=seconds)
        self._monotonic_ns += round(seconds * NS_PER_S)

    def set_by(self, seconds: float) -> None:
        """Set the wall clock, in either direction, as NTP does; the monotonic one knows nothing."""
        self._now += timedelta(seconds=seconds)


def ns_from_s(seconds: float) -> int:
    """Seconds as integer nanoseconds."""
    return round(seconds * NS_PER_S)


def s_from_ns(nanoseconds: int) -> float:
    """Nanoseconds as seconds."""
    return nanoseconds / NS_PER_S

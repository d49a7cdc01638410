"""Waiting until an absolute time, to a fraction of a millisecond.

Event loops round their timers to milliseconds (measured: half a millisecond late at the median).
On Linux a timerfd in the loop's own poll wakes it within about 0.1 ms; elsewhere the loop's timer
is the fallback. A due time is absolute, so a late wake-up delays one request and never the next.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
from collections.abc import Callable
from typing import Protocol

from headway.core.clock import NS_PER_S, Clock

_HAS_TIMERFD = platform.system() == "Linux"
_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1


class Alarm(Protocol):
    """Calls back once, at or soon after an absolute monotonic time; never before it."""

    def set(self, at_ns: int) -> None:
        """Replace whatever was set."""
        ...

    def clear(self) -> None:
        """Call back no more until set again."""
        ...

    def close(self) -> None:
        """Release everything; safe to call twice."""
        ...


def open_alarm(callback: Callable[[], None], clock: Clock) -> Alarm:
    """The most exact alarm of this host, on the running loop."""
    return TimerfdAlarm(callback) if _HAS_TIMERFD else LoopAlarm(callback, clock)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class TimerfdAlarm:
    """A timerfd that the event loop polls with everything else.

    The descriptor is not read when it fires: setting it again clears its readiness, which spares
    a system call a request. After a callback that set nothing it is cleared.
    """

    def __init__(self, callback: Callable[[], None]) -> None:
        # os.timerfd_create exists from Python 3.13 on; this serves 3.11 as well.
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._spec = _Itimerspec()
        self._spec_reference = ctypes.byref(self._spec)
        self._is_set = False
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._fired)

    def set(self, at_ns: int) -> None:
        # Zero would disarm; a time in the past fires at once, which is what is wanted.
        seconds, nanoseconds = divmod(max(at_ns, 1), NS_PER_S)
        self._spec.value.seconds = seconds
        self._spec.value.nanoseconds = nanoseconds
        self._settime(self._fd, _TFD_TIMER_ABSTIME, self._spec_reference, None)
        self._is_set = True

    def clear(self) -> None:
        self._spec.value.seconds = 0
        self._spec.value.nanoseconds = 0
        self._settime(self._fd, 0, self._spec_reference, None)
        self._is_set = False

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _fired(self) -> None:
        self._is_set = False
        try:
            self._callback()
        finally:
            if not self._is_set:
                self.clear()


class LoopAlarm:
    """The event loop's own timer, for hosts without timerfd."""

    def __init__(self, callback: Callable[[], None], clock: Clock) -> None:
        self._callback = callback
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_ns: int) -> None:
        self.clear()
        wait_s = max(0.0, (at_ns - self._clock.monotonic_ns()) / NS_PER_S)
        self._handle = self._loop.call_later(wait_s, self._fired, at_ns)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        self.clear()

    def _fired(self, at_ns: int) -> None:
        self._handle = None
        if self._clock.monotonic_ns() < at_ns:
            self.set(at_ns)  # Loop timers may fire a little early; a request must not.
            return
        self._callback()

"""One timer for everything that falls due, precise to the kernel's high-resolution clock.

uvloop's own timers count milliseconds, so a token due in 5 ms would leave up to 1 ms late. On
Linux one timerfd wakes the loop at the earliest absolute due time; elsewhere the loop's timers do.
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import os
import sys
from collections.abc import Callable

from headway.core.clock import NS_PER_S, monotonic_ns

_HAS_TIMERFD: bool = sys.platform.startswith("linux")

DueCallback = Callable[[int], int | None]
"""Called with the time now; returns when to be called again (monotonic ns), or None."""


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class _TimerfdAlarm:
    """Wakes the loop through a timerfd armed with an absolute time."""

    _CLOCK_MONOTONIC = 1
    _ABSOLUTE = 1

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._fd: int = libc.timerfd_create(
            self._CLOCK_MONOTONIC, os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
        )
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        self._spec = _Itimerspec()
        self._spec_ref = ctypes.byref(self._spec)
        self._loop = loop
        self._wake = wake
        self._is_armed = False
        loop.add_reader(self._fd, self._expired)

    def arm(self, due_ns: int) -> None:
        # A value of zero would disarm the timer instead of firing it at once.
        self._spec.value.seconds, self._spec.value.nanoseconds = divmod(max(due_ns, 1), NS_PER_S)
        self._settime(self._fd, self._ABSOLUTE, self._spec_ref, None)
        self._is_armed = True

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _expired(self) -> None:
        # It is not read: arming it again takes its readiness away, which spares a system call a
        # token. Woken too early, because it was armed again meanwhile, nothing is due yet.
        self._is_armed = False
        self._wake()
        if not self._is_armed:
            self._spec.value.seconds = self._spec.value.nanoseconds = 0
            self._settime(self._fd, 0, self._spec_ref, None)


class _LoopAlarm:
    """Wakes the loop through its own timers, where there is no timerfd."""

    def __init__(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
        self._loop = loop
        self._wake = wake
        self._handle: asyncio.TimerHandle | None = None

    def arm(self, due_ns: int) -> None:
        self.close()
        delay_s = max(0, due_ns - monotonic_ns()) / NS_PER_S
        self._handle = self._loop.call_later(delay_s, self._wake)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()


class PreciseTimer:
    """Calls callbacks at absolute monotonic times, on the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._heap: list[tuple[int, int, DueCallback]] = []
        self._sequence = 0
        self._firing = False
        self._alarm = _make_alarm(loop, self._fire)

    def call_at(self, due_ns: int, callback: DueCallback) -> None:
        """Call `callback` at `due_ns`; what it returns is when to call it again."""
        self._sequence += 1
        entry = (due_ns, self._sequence, callback)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry and not self._firing:
            self._alarm.arm(due_ns)

    def close(self) -> None:
        """Forget everything that is due."""
        self._heap.clear()
        self._alarm.close()

    def _fire(self) -> None:
        heap = self._heap
        now_ns = monotonic_ns()
        self._firing = True
        try:
            # Only what was due when the timer fired: under overload the loop must still read
            # its sockets between two rounds.
            while heap and heap[0][0] <= now_ns:
                callback = heapq.heappop(heap)[2]
                again_ns = callback(now_ns)
                if again_ns is not None:
                    self._sequence += 1
                    heapq.heappush(heap, (max(again_ns, now_ns + 1), self._sequence, callback))
        finally:
            self._firing = False
            if heap:
                self._alarm.arm(heap[0][0])


def _make_alarm(
    loop: asyncio.AbstractEventLoop, wake: Callable[[], None]
) -> _TimerfdAlarm | _LoopAlarm:
    if _HAS_TIMERFD:
        return _TimerfdAlarm(loop, wake)
    return _LoopAlarm(loop, wake)

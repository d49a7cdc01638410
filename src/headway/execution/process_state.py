"""What an attempt may change in its process, and how a warm one is made as new (trap 12).

What is cheap to read and put back is put back. What cannot be put back with certainty (a thread, a
leaked descriptor, a lowered limit) retires the process.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # see _handler_of
import asyncio
import decimal
import faulthandler
import gc
import locale
import logging
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SIGNALS = tuple(
    number
    for number in sorted(signal.valid_signals())
    if number not in (signal.SIGKILL, signal.SIGSTOP)
)
_RESOURCES = tuple(
    sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")})
)


@dataclass(frozen=True, slots=True)
class Setting:
    """One piece of process-wide state."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(owner: Any, name: str) -> Setting:
    return Setting(
        f"{getattr(owner, '__name__', owner)}.{name}",
        lambda: getattr(owner, name),
        lambda value: setattr(owner, name, value),
    )


def _content(owner: Any, name: str) -> Setting:
    """A list that other code holds on to: its content is put back, not the object."""

    def write(value: tuple[Any, list[Any]]) -> None:
        value[0][:] = value[1]
        setattr(owner, name, value[0])

    def read() -> tuple[Any, list[Any]]:
        return getattr(owner, name), list(getattr(owner, name))

    return Setting(f"{owner.__name__}.{name}", read, write)


def _umask() -> int:
    value = os.umask(0o077)
    os.umask(value)
    return value


_handler_of: Callable[[int], Any] = _signal.getsignal
"""What `signal.getsignal` calls and then makes an enum member of: for all signals, after each
attempt, that took 40 µs of the 500 that a job process spent on a short one."""


def _read_handlers() -> dict[int, Any]:
    return {number: _handler_of(number) for number in _SIGNALS}


def _write_handlers(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        # None: set by C code before Python began; there is nothing that could be put back.
        if handler is not None and _handler_of(number) != handler:
            signal.signal(number, handler)


def _write_mask(mask: set[int]) -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _read_timers() -> tuple[tuple[float, float], ...]:
    which = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
    return tuple(signal.getitimer(timer) for timer in which)


def _stop_timers(_: object) -> None:
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        signal.setitimer(timer, 0)


def _read_locale() -> str:
    return locale.setlocale(locale.LC_ALL)


def _read_root_logger() -> tuple[int, list[Any], list[Any], int]:
    root = logging.getLogger()
    return root.level, list(root.handlers), list(root.filters), logging.root.manager.disable


def _write_root_logger(state: tuple[int, list[Any], list[Any], int]) -> None:
    root = logging.getLogger()
    level, root.handlers[:], root.filters[:], disabled = state
    root.setLevel(level)
    logging.disable(disabled)


def _read_decimal() -> decimal.Context:
    return decimal.getcontext().copy()


def _write_decimal(context: decimal.Context) -> None:
    # A copy again: a job changes the current context in place.
    decimal.setcontext(context.copy())


def _set_faulthandler(enabled: bool) -> None:
    # To descriptor 2, which is the attempt's log: a segfault's traceback lands there.
    if enabled:
        faulthandler.enable(file=2)
    else:
        faulthandler.disable()


SETTINGS: tuple[Setting, ...] = (
    Setting("working directory", os.getcwd, os.chdir),
    Setting("umask", _umask, os.umask),
    Setting("signal handlers", _read_handlers, _write_handlers),
    Setting("signal mask", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()), _write_mask),
    Setting("timers", _read_timers, _stop_timers),
    Setting("locale", _read_locale, lambda value: locale.setlocale(locale.LC_ALL, value)),
    Setting("root logger", _read_root_logger, _write_root_logger),
    Setting("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Setting("trace function", sys.gettrace, sys.settrace),
    Setting("profile function", sys.getprofile, sys.setprofile),
    Setting("garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    Setting("collector thresholds", gc.get_threshold, lambda value: gc.set_threshold(*value)),
    Setting("socket timeout", socket.getdefaulttimeout, socket.setdefaulttimeout),
    Setting("switch interval", sys.getswitchinterval, sys.setswitchinterval),
    Setting("faulthandler", faulthandler.is_enabled, _set_faulthandler),
    Setting("event loop policy", lambda: None, asyncio.set_event_loop_policy),
    Setting("decimal context", _read_decimal, _write_decimal),
    _attribute(sys, "excepthook"),
    _attribute(sys, "displayhook"),
    _attribute(threading, "excepthook"),
    _attribute(tempfile, "tempdir"),
    _content(sys, "path"),
    _content(sys, "argv"),
    _content(sys, "meta_path"),
    _content(sys, "path_hooks"),
    _content(warnings, "filters"),
)


class ProcessState:
    """The state of this process as it was before its first attempt.

    Args:
        spare_descriptors: Open ones that belong to the first attempt and are closed behind it.
    """

    def __init__(self, spare_descriptors: int = 0) -> None:
        self._saved = [(setting, setting.read()) for setting in SETTINGS]
        self._fixed = _read_fixed()
        self._descriptors = count_descriptors() - spare_descriptors

    def restore(self) -> None:
        """Put back every setting."""
        for setting, value in self._saved:
            setting.write(value)

    def reason_to_retire(self, threads: int) -> str | None:
        """What the last attempt left behind that cannot be put back, or None.

        Call it when the attempt's own descriptors are closed.

        Args:
            threads: Of this process, as the kernel counts them.
        """
        if threading.active_count() > 1 or threads > 1:
            return "a thread was left running"
        if (count := count_descriptors()) > self._descriptors:
            return f"{count - self._descriptors} file descriptors were left open"
        if _read_fixed() != self._fixed:
            return "a resource limit, priority, CPU affinity or user id was changed"
        return None


def count_descriptors() -> int:
    """Open file descriptors of this process."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 1


def _read_fixed() -> tuple[Any, ...]:
    return (
        tuple(resource.getrlimit(number) for number in _RESOURCES),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None,
        os.getresuid(),
        os.getresgid(),
        os.getgroups(),
    )

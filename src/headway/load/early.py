"""Processes that nearly every run needs, started before the rest of the command is loaded.

Loading the command takes as long as loading a worker or the null server, and each fills a core. So
a command that is about to run a load test starts the first worker, and the null server where a
calibration is likely, before anything else; the run takes them over, and what it does not take is
ended. This module loads nothing but the standard library's processes and sockets.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from types import TracebackType
from typing import IO

_EXIT_DEADLINE_S = 3.0


class EarlyWorker:
    """A worker's process, and our end of its socket pair.

    Args:
        log: Takes its standard error; None: where ours goes, until its run is told (`Setup.log`).
    """

    def __init__(self, log: IO[bytes] | None = None) -> None:
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headway.load.worker_main", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(theirs.fileno(),),
                # A group of its own: Ctrl-C in the terminal is for the parent to interpret.
                process_group=0,
            )

    def close(self) -> None:
        """End it at once; nobody has spoken to it yet."""
        self.process.kill()
        self.process.wait(_EXIT_DEADLINE_S)
        self.socket.close()


class NullServerProcess:
    """A simulated server with no delay; it prints where it listens."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headway.sim", "--die-with-parent"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def close(self) -> None:
        """End it; safe to call twice."""
        self.process.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.wait(_EXIT_DEADLINE_S)


class EarlyProcesses:
    """What was started early and is not taken yet; use it as a context.

    Args:
        null_server: Whether a calibration is likely.
    """

    def __init__(self, null_server: bool) -> None:
        self._worker: EarlyWorker | None = EarlyWorker()
        self._null_server = NullServerProcess() if null_server else None

    def take_worker(self) -> EarlyWorker | None:
        """The worker, once; ending it is then the caller's."""
        worker, self._worker = self._worker, None
        return worker

    def take_null_server(self) -> NullServerProcess | None:
        """The null server, once; ending it is then the caller's."""
        server, self._null_server = self._null_server, None
        return server

    def close(self) -> None:
        """End what nobody took."""
        for process in (self.take_worker(), self.take_null_server()):
            if process is not None:
                process.close()

    def __enter__(self) -> EarlyProcesses:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

"""The two commands that the verifier starts, and starts again: the server and a second worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.core.clock import Clock, ns_from_s

STOP_S = 60.0
"""Beyond every drain; who takes longer to end is said to hang."""


class Servant:
    """One `headway` command that is to be there.

    Args:
        name: For messages.
        arguments: After `headway`.
        environment: Of the process.
        log: Where its output goes.
        ready: What it says when it is ready.
        clock: Monotonic time.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        ready: str,
        clock: Clock,
    ) -> None:
        self.name = name
        self.arguments = list(arguments)
        self._environment = dict(environment)
        self._log = log
        self._log_begin = 0
        self._ready = ready
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at_ns = 0
        self._expected: tuple[int, ...] = ()
        self._was_disturbed = False
        self._ending_since_ns: int | None = None
        self._down_ns = 0
        self._dismissed = False
        self.starts = 0
        self.complaints: list[str] = []

    @property
    def pid(self) -> int | None:
        """Of the process that was started last, until its end was seen."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start it now; it must not be there."""
        assert self._process is None, "one that is forgotten would be left behind"
        self._expected, self._was_disturbed, self._ending_since_ns = (), False, None
        self.starts += 1
        with self._log.open("ab") as log:
            self._log_begin = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headway.cli.main", *self.arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._log.parent,
                start_new_session=True,
            )

    @property
    def is_ready(self) -> bool:
        """Whether what was started last has said that it is ready."""
        return self._process is not None and self._ready in self._said()

    def tend(self) -> None:
        """Start it again when its time has come; say what is wrong with its end."""
        if self._process is None:
            if (
                self.starts
                and not self._dismissed
                and self._clock.monotonic_ns() >= self._start_at_ns
            ):
                self.start()
            return
        code = self._process.poll()
        if code is not None:
            self._ended(code)
        elif self._hangs():
            self._complain(f"did not end within {STOP_S:g} s of SIGTERM and was killed")
            self.expect_death(0.0)
            self._process.kill()

    def expect_death(self, down_s: float) -> None:
        """It is about to be killed; start it again after `down_s`."""
        self._expected = (-signal.SIGKILL, 0)
        self._down_ns = ns_from_s(down_s)

    def disturbed(self) -> None:
        """Something else was killed: a start that needs it may fail, and says so."""
        self._was_disturbed = True

    def terminate(self, down_s: float) -> None:
        """SIGTERM; start it again `down_s` after it has ended."""
        if self._process is None or self._ending_since_ns is not None:
            return
        self._expected = (0, -signal.SIGTERM)  # the latter before it has a handler
        self._down_ns = ns_from_s(down_s)
        self._ending_since_ns = self._clock.monotonic_ns()
        self._process.terminate()

    def end(self) -> None:
        """SIGTERM for good; wait for its end."""
        self._dismissed = True
        if self._process is None:
            return
        self._process.terminate()
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._complain(f"did not end within {STOP_S:g} s of SIGTERM and was killed")
            self._process.kill()
            self._process.wait()
        else:
            if code != 0:
                self._complain(f"ended with exit code {code} at SIGTERM")
        self._process = None

    def _hangs(self) -> bool:
        since_ns = self._ending_since_ns
        return since_ns is not None and self._clock.monotonic_ns() - since_ns > ns_from_s(STOP_S)

    def _ended(self, code: int) -> None:
        # A start that needs what was killed meanwhile fails, and is made again.
        failed_start = self._was_disturbed and self._ready not in self._said()
        if code not in self._expected and not failed_start:
            self._complain(f"ended by itself with exit code {code}; {self._last_words()}")
        self._process = None
        self._start_at_ns = self._clock.monotonic_ns() + self._down_ns
        self._down_ns = 0

    def _complain(self, text: str) -> None:
        self.complaints.append(f"{self.name} (start {self.starts}) {text}")

    def _last_words(self) -> str:
        lines = self._said().splitlines()
        return f"its last words: {lines[-1][:300]}" if lines else "it said nothing"

    def _said(self) -> str:
        with self._log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode("utf-8", "replace")


def clean_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings for Headway, which belong to other servers."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEADWAY_")}
    return {**own, **extra}

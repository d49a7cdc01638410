"""Carries a plan out."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from headway.chaos.history import Pause
from headway.chaos.plan import Action, Step, Victim
from headway.chaos.scene import Scene, Seen
from headway.chaos.servants import Servant
from headway.core.clock import Clock, ns_from_s, s_from_ns

ROUNDS = 20
"""Looks at the scene until nothing of it lives."""
HOG_BYTES = 256 * 1024 * 1024

_BUSY = (
    "import sys, time\n"
    "end = time.monotonic() + float(sys.argv[1])\n"
    "while time.monotonic() < end: pass"
)
_GREEDY = (
    "import sys, time\n"
    "held = bytearray(int(sys.argv[2]))\n"
    "for at in range(0, len(held), 4096): held[at] = 1\n"
    "time.sleep(float(sys.argv[1]))"
)


@dataclass(frozen=True)
class _Stopped:
    seen: Seen
    from_ns: int
    until_ns: int


class Faults:
    """Does what steps say.

    Args:
        scene: Where the victims are.
        server: Started again when it was killed.
        second: The second worker; likewise.
        clock: Monotonic time.
        tell: Told each thing that is done, in words.
    """

    def __init__(
        self,
        scene: Scene,
        server: Servant,
        second: Servant,
        clock: Clock,
        tell: Callable[[str], None],
    ) -> None:
        self._scene = scene
        self._server = server
        self._second = second
        self._clock = clock
        self._tell = tell
        self._stopped: list[_Stopped] = []
        self._hogs: list[subprocess.Popen[bytes]] = []
        self.pauses: list[Pause] = []

    def do(self, step: Step) -> None:
        """Carry out one step."""
        match step.action:
            case Action.KILL if step.victim is Victim.EVERYTHING:
                self._kill_everything(step.for_s)
            case Action.KILL:
                self._kill(step)
            case Action.STOP:
                self._stop(step)
            case Action.TERMINATE:
                servant = self._second if step.victim is Victim.KEEPER else self._server
                self._tell(f"terminate {step.victim} ({servant.pid})")
                servant.terminate(step.for_s)
            case Action.STARVE_CPU:
                self._tell(f"starve CPU for {step.for_s:g} s")
                for _ in range(2 * (os.cpu_count() or 1)):
                    self._hog(_BUSY, str(step.for_s))
            case Action.STARVE_MEMORY:
                self._tell(f"starve memory for {step.for_s:g} s")
                self._hog(_GREEDY, str(step.for_s), str(HOG_BYTES))

    def wake_due(self) -> None:
        """Continue those whose time is over; reap the hogs."""
        now_ns = self._clock.monotonic_ns()
        for stopped in [each for each in self._stopped if each.until_ns <= now_ns]:
            self._wake(stopped)
        self._hogs = [hog for hog in self._hogs if hog.poll() is None]

    def close(self) -> None:
        """Continue everybody, end the hogs."""
        for stopped in list(self._stopped):
            self._wake(stopped)
        for hog in self._hogs:
            hog.kill()
            hog.wait()
        self._hogs.clear()

    def kill_everything(self) -> None:
        """SIGKILL to all of the scene, until nothing of it is left."""
        for _ in range(ROUNDS):
            living = self._scene.processes()
            if not living:
                return
            for seen in living:
                with contextlib.suppress(psutil.Error):
                    seen.process.kill()

    # --- the kinds of steps ---------------------------------------------------------------------

    def _kill_everything(self, down_s: float) -> None:
        self._tell("kill everything")
        self._server.expect_death(down_s)
        self._second.expect_death(down_s)
        self.kill_everything()

    def _kill(self, step: Step) -> None:
        seen = self._choose(step)
        if seen is None:
            return
        self._tell(f"kill {seen}")
        for servant in (self._server, self._second):
            if servant.pid == seen.pid:
                servant.expect_death(step.for_s)
            else:
                servant.disturbed()
        with contextlib.suppress(psutil.Error):
            seen.process.kill()

    def _stop(self, step: Step) -> None:
        seen = self._choose(step)
        if seen is None:
            return
        self._tell(f"stop {seen} for {step.for_s:g} s")
        from_ns = self._clock.monotonic_ns()
        with contextlib.suppress(psutil.Error):
            seen.process.suspend()
            self._stopped.append(_Stopped(seen, from_ns, from_ns + ns_from_s(step.for_s)))

    def _wake(self, stopped: _Stopped) -> None:
        self._stopped.remove(stopped)
        with contextlib.suppress(psutil.Error):
            stopped.seen.process.resume()
        now_ns = self._clock.monotonic_ns()
        self.pauses.append(
            Pause(
                pid=stopped.seen.pid,
                role=stopped.seen.role,
                from_ns=stopped.from_ns,
                until_ns=now_ns,
            )
        )
        seconds = s_from_ns(now_ns - stopped.from_ns)
        self._tell(f"continue process {stopped.seen.pid} after {seconds:.1f} s")

    def _choose(self, step: Step) -> Seen | None:
        found = [seen for seen in self._scene.processes() if seen.role is step.victim]
        if not found:
            self._tell(f"{step.action} {step.victim}: there is none now")
            return None
        return found[int(step.pick * len(found))]

    def _hog(self, program: str, *arguments: str) -> None:
        self._hogs.append(subprocess.Popen([sys.executable, "-I", "-c", program, *arguments]))

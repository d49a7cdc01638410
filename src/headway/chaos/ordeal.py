"""A whole run: a server in a scratch directory, the jobs, the plan, and the judgement."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import yaml

from headway.chaos.evidence import Evidence
from headway.chaos.faults import Faults
from headway.chaos.feeding import Feeder
from headway.chaos.following import Followers
from headway.chaos.history import History
from headway.chaos.journal import read_journal
from headway.chaos.judgement import Judgement, judge
from headway.chaos.plan import Step
from headway.chaos.scene import MARK, Scene
from headway.chaos.servants import Servant, clean_environment
from headway.chaos.workload import LEASE_S, PATIENCE_S, Assignment, assignments, shared_journal
from headway.core.clock import Clock, ns_from_s, s_from_ns
from headway.core.errors import HeadwayError
from headway.core.statedir import StateDir

OPERATIONS = "headway.chaos.operations"
READY_S = 90.0
GONE_S = 15.0
"""What outlives its server by longer is an orphan."""
_TICK_S = 0.02
_LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True)
class OrdealSettings:
    """How a run is set up.

    Attributes:
        directory: Empty; everything is kept in it.
        seed: Of the jobs and of where followers break off.
        plan: What is done.
        duration_s: Jobs are submitted for so long.
        settle_s: For all jobs to end afterwards.
    """

    directory: Path
    seed: int
    plan: Sequence[Step]
    duration_s: float
    settle_s: float


class Ordeal:
    """Puts a server through a plan; `run` is called once.

    Args:
        settings: See `OrdealSettings`.
        clock: Source of times.
        tell: Told what is done, in words.
    """

    def __init__(self, settings: OrdealSettings, clock: Clock, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._clock = clock
        self._tell_raw = tell
        self._state_dir = StateDir(settings.directory / "state")
        self._journals = settings.directory / "journals"
        self._evidence = Evidence(self._state_dir, clock)
        self._scene = Scene(settings.directory)
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        config = settings.directory / "serve.yaml"
        self._server = self._servant(
            "server", "is ready at",
            "serve", "--port", str(port), "--long", "2+1", "--short", "2+1", config=config,
        )  # fmt: skip
        self._second = self._servant(
            "second worker", "is ready (", "worker", "--long", "1", "--short", "1", config=config
        )
        self._faults = Faults(self._scene, self._server, self._second, clock, self._tell)
        self._followers = Followers(self._url, settings.directory / "followed", settings.seed)
        self._feeder = Feeder(
            self._url, assignments(settings.seed, self._journals), clock, self._on_accepted
        )
        self._began_ns = clock.monotonic_ns()

    def run(self) -> Judgement:
        """Do it all; what is left running at the end is killed, whatever happens.

        Raises:
            HeadwayError: the server could not be started at all.
        """
        self._journals.mkdir(parents=True)
        config = self._settings.directory / "serve.yaml"
        config.write_text(yaml.safe_dump(_server_settings()), encoding="utf-8")
        try:
            self._start()
            self._under_fire()
            self._settle()
            return judge(self._shut_down())
        finally:
            self._faults.close()
            self._faults.kill_everything()

    # --- the parts of a run ---------------------------------------------------------------------

    def _start(self) -> None:
        self._server.start()
        if not self._within(READY_S, lambda: self._server.is_ready):
            raise HeadwayError(f"the server did not start; see {self._settings.directory}")
        self._second.start()

    def _under_fire(self) -> None:
        self._began_ns = self._clock.monotonic_ns()
        self._feeder.start()
        waiting = list(self._settings.plan)
        while self._elapsed_s() < self._settings.duration_s:
            while waiting and waiting[0].at_s <= self._elapsed_s():
                self._faults.do(waiting.pop(0))
            self._tend()
            time.sleep(_TICK_S)

    def _settle(self) -> None:
        self._tell("settling")
        self._faults.close()
        if not self._within(READY_S, lambda: self._server.is_ready):
            self._server.complaints.append("the server did not come back")
        self._feeder.enough(self._settings.settle_s)
        self._within(self._settings.settle_s, self._all_ended, _LOOK_S)
        self._followers.finish(GONE_S)

    def _all_ended(self) -> bool:
        return asyncio.run(self._evidence.unended()) == 0

    def _shut_down(self) -> History:
        self._tell("shutting down")
        for servant in (self._second, self._server):
            servant.end()
        self._within(GONE_S, lambda: not self._scene.processes(), _LOOK_S)
        orphans = tuple(str(seen) for seen in self._scene.processes())
        self._faults.kill_everything()
        jobs = asyncio.run(self._evidence.jobs())
        accepted = tuple(self._feeder.accepted)
        return History(
            accepted=accepted,
            jobs=jobs,
            journals={
                each.assignment.number: read_journal(each.assignment.journal) for each in accepted
            },
            shared=read_journal(shared_journal(self._journals)),
            logs={job_id: self._evidence.logs(job_id) for job_id in jobs},
            followed=self._followers.followed,
            pauses=tuple(self._faults.pauses),
            orphans=orphans,
            leftovers=self._evidence.leftovers(jobs),
            complaints=tuple(
                chain(self._server.complaints, self._second.complaints, self._feeder.complaints)
            ),
        )

    # --- small things ---------------------------------------------------------------------------

    def _servant(self, name: str, ready: str, *arguments: str, config: Path) -> Servant:
        return Servant(
            name,
            [*arguments, "--config", str(config), "--no-bench", "--operations", OPERATIONS,
             "--state-dir", str(self._state_dir.root)],
            clean_environment(self._scene.environment),
            self._settings.directory / f"{name.replace(' ', '-')}.log",
            ready,
            self._clock,
        )  # fmt: skip

    def _on_accepted(self, assignment: Assignment, job_id: str) -> None:
        if assignment.lines:
            self._followers.offer(job_id)

    def _tend(self) -> None:
        self._faults.wake_due()
        self._server.tend()
        self._second.tend()

    def _within(self, limit_s: float, holds: Callable[[], bool], every_s: float = _TICK_S) -> bool:
        """Keep the servants going until something holds; False when it does not in time."""
        deadline_ns = self._clock.monotonic_ns() + ns_from_s(limit_s)
        while not holds():
            if self._clock.monotonic_ns() > deadline_ns:
                return False
            self._tend()
            time.sleep(every_s)
        return True

    def _elapsed_s(self) -> float:
        return s_from_ns(self._clock.monotonic_ns() - self._began_ns)

    def _tell(self, text: str) -> None:
        self._tell_raw(f"{self._elapsed_s():7.2f} s  {text}")


def free_port() -> int:
    """A port of loopback that nobody has now; every start of the server takes it again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _server_settings() -> dict[str, object]:
    return {
        "lease_s": LEASE_S,
        "worker_patience_s": PATIENCE_S,
        "drain_s": 2.0,
        "drain_grace_s": 1.0,
        "env_inherited": [MARK],
        # Burst slots are to be used, however little memory the host has left.
        "burst_reserve_bytes": 0,
        "burst_job_bytes": 1024 * 1024,
    }

"""A hypothesis state machine against a live server: whatever is done to it, in whatever order,
everything is accounted for (J2, J5, J6, J7, J18).

The whole state machine is tested on the store itself (tests/conformance); this smaller one has the
processes in it as well.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from accounting import assert_everything_accounted_for
from fault_server import start, submit, titled
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from job_servers import JobServer, StartServer

from headway.client import Client, Conflict, RetryPolicy

pytestmark = pytest.mark.timeout(300)

EXAMPLES = 3
STEPS = 7
LONG = ("work", "once", "brood")

STEP = st.one_of(
    st.tuples(st.sampled_from(["quick", "twice", "work", "once", "brood"]), st.integers(1, 5)),
    st.tuples(st.sampled_from(["cancel", "retry"]), st.integers(0, 20)),
    st.tuples(st.sampled_from(["kill worker", "kill job", "kill API", "restart", "wait"]),
              st.integers(0, 5)),
)  # fmt: skip


class Life:
    """One server after another over one state directory, and everything that was asked of them."""

    def __init__(self, start_server: StartServer) -> None:
        self._start_server = start_server
        self.server: JobServer = start(start_server)
        self.jobs: list[str] = []
        self.cancelled: set[str] = set()

    def do(self, what: str, number: int) -> None:
        actions = {
            "cancel": self._cancel, "retry": self._retry, "wait": self._wait,
            "kill worker": self._kill_worker, "kill job": self._kill_job,
            "kill API": self._kill_api, "restart": self._restart,
        }  # fmt: skip
        if what in actions:
            actions[what](number)
        else:
            fields = {"seconds": 0.5} if what in LONG else {}
            with self._client() as client:
                self.jobs += submit(client, what, number, **fields)

    def _cancel(self, number: int) -> None:
        for job in self._chosen(number):
            with self._client() as client:
                if not client.cancel(job).is_ended:
                    self.cancelled.add(job)

    def _retry(self, number: int) -> None:
        for job in self._chosen(number):
            with self._client() as client:
                known = client.get(job)
                try:
                    self.jobs.append(client.retry(job).id)
                except Conflict:
                    assert not known.is_ended, known

    def _wait(self, number: int) -> None:
        for job in self._chosen(number):
            with self._client() as client:
                assert client.wait(job, timeout_s=60).outcome is not None

    def _kill_worker(self, number: int) -> None:
        with ended_already():
            os.kill(titled(self.server, "headway: worker"), signal.SIGKILL)

    def _kill_job(self, number: int) -> None:
        with ended_already():
            os.kill(titled(self.server, " job "), signal.SIGKILL)

    def _kill_api(self, number: int) -> None:
        self.server.signal(signal.SIGKILL)
        self._next()

    def _restart(self, number: int) -> None:
        self.server.signal(signal.SIGTERM)
        self.server.signal(signal.SIGTERM)
        self._next()

    def _next(self) -> None:
        self.server.wait()
        self.server = start(self._start_server, port=self.server.port)

    def _chosen(self, number: int) -> list[str]:
        return [self.jobs[number % len(self.jobs)]] if self.jobs else []

    def _client(self) -> Client:
        return Client(self.server.url, retry=RetryPolicy(patience_s=30))


@contextmanager
def ended_already() -> Iterator[None]:
    """Nothing of the sort may run at the moment."""
    try:
        yield
    except (StopIteration, ProcessLookupError, psutil.NoSuchProcess):
        return


@pytest.mark.serial
def test_whatever_is_done_to_a_server_everything_is_accounted_for(
    start_server: StartServer,
) -> None:
    life = Life(start_server)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # shrinking would start the same servers a hundred times
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEP, min_size=STEPS, max_size=STEPS))
    def lives_through(steps: list[tuple[str, int]]) -> None:
        for what, number in steps:
            life.do(what, number)

    lives_through()
    accounts = assert_everything_accounted_for(life.server, life.jobs)
    for job in life.cancelled:
        assert accounts[job].state in ("CANCELLED", "SUCCEEDED", "FAILED")
    outcomes = {each.outcome for each in accounts.values()}
    assert outcomes <= {"succeeded", "cancelled", "worker_lost"}

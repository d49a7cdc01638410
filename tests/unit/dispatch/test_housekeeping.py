"""System jobs, retention, leases and loops: duties beside the running of jobs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headway.core.clock import ManualClock, SystemClock
from headway.core.errors import ConfigError, StoreUnavailable
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome
from headway.dispatch.doorbell import Board
from headway.dispatch.host_statistics import HostStatistics
from headway.dispatch.leases import LeaseKeeper
from headway.dispatch.loop import Loop, run_all
from headway.dispatch.metrics import AttemptMetrics
from headway.dispatch.named_lease import NamedLease
from headway.dispatch.owner import owner_of_this_process
from headway.dispatch.retention import Retention
from headway.dispatch.system_jobs import SystemJob, SystemJobs, latest_due, next_due
from headway.store.attempts import Claim, Finish
from headway.store.jobs import RetentionRule
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

NOW = datetime(2026, 11, 30, 12, 5, 30, tzinfo=UTC)
JOB = NewJob(operation="op", lane="long", input_json="{}")


class TestSystemJobs:
    """J19, trap 23."""

    def _jobs(
        self, store: SqliteStore, clock: ManualClock, owner: str, *jobs: SystemJob
    ) -> SystemJobs:
        return SystemJobs(
            store, list(jobs), lambda name: NamedLease(store, name, owner, 5.0), clock
        )

    async def test_a_duty_does_not_rest_because_the_clock_was_set_back(
        self, store: SqliteStore
    ) -> None:
        """Fault suite, "clock stepped": its last due time is in the future."""
        ran: list[None] = []
        clock = ManualClock(NOW)

        async def run() -> None:
            ran.append(None)

        jobs = self._jobs(store, clock, "w1", SystemJob("duty", "*/10 * * * *", run))
        for seconds in (600, -86400, 600):
            clock.set_by(seconds)
            await jobs.step()
        assert len(ran) == 2

    async def test_a_duty_runs_once_for_each_due_time_in_one_worker(
        self, store: SqliteStore
    ) -> None:
        ran: list[str] = []
        clock = ManualClock(NOW)

        def duty(owner: str) -> SystemJob:
            async def run() -> None:
                ran.append(owner)

            return SystemJob("duty", "*/10 * * * *", run)

        workers = [self._jobs(store, clock, owner, duty(owner)) for owner in ("w1", "w2")]
        assert await workers[0].step() == pytest.approx(270.0)
        assert ran == []
        clock.advance(270)
        for worker in workers:
            await worker.step()
        assert ran == ["w1"]
        clock.advance(3600)  # six due times passed; they are not made up one by one
        for worker in reversed(workers):
            await worker.step()
        assert ran == ["w1", "w2"]

    async def test_a_duty_whose_worker_died_runs_again(self, store: SqliteStore) -> None:
        clock = ManualClock(NOW)
        ran: list[str] = []

        async def dies() -> None:
            raise asyncio.CancelledError

        async def run() -> None:
            ran.append("w2")

        first = self._jobs(store, clock, "w1", SystemJob("duty", "* * * * *", dies))
        second = self._jobs(store, clock, "w2", SystemJob("duty", "* * * * *", run))
        clock.advance(60)
        with pytest.raises(asyncio.CancelledError):
            await first.step()
        dead = str(owner_of_this_process("worker")).rsplit(":", 2)[0] + ":1:x"
        await store.take_lease("system:duty", dead, 3600, dead_owners=["w1"])
        await second.step()
        assert ran == ["w2"]

    async def test_a_duty_that_fails_does_not_stop_the_others(self, store: SqliteStore) -> None:
        clock = ManualClock(NOW)
        ran: list[str] = []

        async def fails() -> None:
            raise ValueError("no")

        async def works() -> None:
            ran.append("x")

        jobs = self._jobs(
            store, clock, "w1",
            SystemJob("fails", "* * * * *", fails), SystemJob("works", "* * * * *", works),
        )  # fmt: skip
        clock.advance(60)
        await jobs.step()
        assert ran == ["x"]

    def test_a_wrong_expression_is_refused_at_start(self) -> None:
        async def run() -> None: ...

        with pytest.raises(ConfigError, match="no cron expression"):
            SystemJob("duty", "every day", run)

    def test_due_times(self) -> None:
        at = datetime(2026, 11, 30, 12, 10, tzinfo=UTC)
        assert next_due("*/10 * * * *", NOW) == at
        assert latest_due("*/10 * * * *", NOW, at) == at
        assert latest_due("*/10 * * * *", at, at) is None
        assert latest_due("*/10 * * * *", NOW, at - timedelta(seconds=1)) is None


class TestRetention:
    """J22: jobs, logs, artifacts, results and temp directories go together."""

    async def test_all_that_is_kept_of_a_job_goes(
        self, store: SqliteStore, state_dir: StateDir, jobs: Any
    ) -> None:
        old, live = await jobs.submit(JOB, JOB)
        for job_id in (old, live):
            for place in (
                state_dir.job_logs(job_id),
                state_dir.job_artifacts(job_id) / "1",
                state_dir.job_results(job_id),
                state_dir.attempt_tmp(job_id, 1),
            ):
                place.mkdir(parents=True)
                (place / "file").write_text("x")
        (claimed,) = await store.claim("w", {"long": 1}, 10)
        await store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))
        rules = [RetentionRule(), RetentionRule(max_jobs=0)]
        await Retention(store, state_dir, rules).run()
        left = [path for path in state_dir.root.rglob("*") if old in str(path)]
        assert left == []
        assert (await store.find(old)).__class__.__name__ == "NotFound"
        assert (await jobs.get(live)).state is JobState.PENDING
        assert (state_dir.job_logs(live) / "file").exists()

    async def test_hundreds_go_in_one_run(
        self, store: SqliteStore, state_dir: StateDir, jobs: Any
    ) -> None:
        await jobs.submit(*[JOB] * 450)
        for claimed in await store.claim("w", {"long": 450}, 60):
            await store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))
        await Retention(store, state_dir, [RetentionRule(max_jobs=7)]).run()
        assert len(await store.expired_jobs(RetentionRule(max_jobs=0), 1000)) == 7

    async def test_a_run_ends_though_jobs_go_on_ending(
        self, store: SqliteStore, state_dir: StateDir, jobs: Any
    ) -> None:
        class BusyStore:
            """One more job has ended whenever somebody looks."""

            async def expired_jobs(self, rule: RetentionRule, limit: int) -> list[str]:
                await jobs.submit(JOB)
                (claimed,) = await store.claim("w", {"long": 1}, 60)
                await store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))
                return await store.expired_jobs(rule, limit)

            async def delete_jobs(self, job_ids: list[str]) -> int:
                return await store.delete_jobs(job_ids)

        busy: Any = BusyStore()
        async with asyncio.timeout(30):
            await Retention(busy, state_dir, [RetentionRule(max_jobs=0)]).run()


async def test_host_statistics_measure_the_state_directory(
    store: SqliteStore, state_dir: StateDir
) -> None:
    metrics = AttemptMetrics("worker")
    state_dir.job_logs("j").mkdir()
    state_dir.attempt_log("j", 1).write_bytes(b"x" * 1234)
    await HostStatistics(state_dir, metrics).run()
    text = metrics.exposition().decode()
    assert 'headway_state_dir_bytes{part="logs"} 1234.0' in text
    assert "headway_memory_available_bytes" in text


class TestLeases:
    async def test_a_lease_is_over_for_its_holder_before_it_is_for_others(
        self, store: SqliteStore, jobs: Any
    ) -> None:
        """J5: a process that slept past its lease may not write."""
        clock = ManualClock(NOW)
        await jobs.submit(JOB)
        (claimed,) = await store.claim("w", {"long": 1}, 10)
        keeper = LeaseKeeper(store, "w", clock, 10)
        lost: list[bool] = []
        lease = keeper.hold(claimed, lambda: lost.append(True))
        clock.advance((claimed.lease_until_ns - 1) / 1e9)
        assert lease.holds()
        clock.advance(1)
        assert not lease.holds()
        await keeper.renew()
        assert lease.holds()
        await store.rescue(["w"])
        await keeper.renew()
        await keeper.renew()
        assert (lease.holds(), lost) == (False, [True])

    async def test_an_attempt_that_has_ended_loses_nothing(
        self, store: SqliteStore, jobs: Any
    ) -> None:
        await jobs.submit(JOB)
        (claimed,) = await store.claim("w", {"long": 1}, 10)
        keeper = LeaseKeeper(store, "w", SystemClock(), 10)
        lost: list[bool] = []
        lease = keeper.hold(claimed, lambda: lost.append(True))
        lease.end()
        await store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))
        await keeper.renew()
        assert lost == []

    async def test_a_claim_whose_answer_was_lost_is_given_back(
        self, store: SqliteStore, jobs: Any
    ) -> None:
        """Committed, but nobody runs it: without this it would be RUNNING for ever (trap 3)."""
        (job_id,) = await jobs.submit(JOB)
        await store.claim("w", {"long": 1}, 3600)
        keeper = LeaseKeeper(store, "w", SystemClock(), 10)
        await keeper.renew()
        assert (await jobs.get(job_id)).state is JobState.RUNNING
        await keeper.renew()
        back = await jobs.get(job_id)
        assert (back.state, back.released) == (JobState.PENDING, 1)
        assert await store.running("w") == []
        assert await store.end_attempt(
            Claim(job_id=job_id, attempt=1, owner="w"), Finish(outcome=Outcome.FAILED)
        ) is None  # fmt: skip


class TestLoop:
    async def test_a_store_that_is_away_is_waited_for(self) -> None:
        turns: list[int] = []

        async def step() -> float | None:
            turns.append(1)
            if len(turns) == 1:
                raise StoreUnavailable("away")
            loop.stop()
            return None

        loop = Loop("x", step, 60.0, Board().listen())
        async with asyncio.timeout(10):
            await loop.run()
        assert len(turns) == 2

    async def test_any_other_error_stops_all_loops_and_is_raised(self) -> None:
        async def fails() -> float | None:
            raise ValueError("a bug")

        async def works() -> float | None:
            return None

        board = Board()
        loops = [Loop("a", fails, 60, board.listen()), Loop("b", works, 60, board.listen())]
        async with asyncio.timeout(10):
            with pytest.raises(ExceptionGroup, match="TaskGroup"):
                await run_all(loops)

    async def test_a_bell_wakes_it_at_once(self) -> None:
        board, turned = Board(), asyncio.Queue[int]()

        async def step() -> float | None:
            turned.put_nowait(1)
            return None

        loop = Loop("x", step, 3600, board.listen("work"))
        running = asyncio.create_task(loop.run())
        await turned.get()
        board.ring("work")
        async with asyncio.timeout(10):
            await turned.get()
        loop.stop()
        loop.stop()
        await running

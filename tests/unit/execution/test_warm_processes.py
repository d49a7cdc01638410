"""Warm processes: reused, as good as new each time, replaced when in doubt (J12, trap 12)."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.core.clock import SystemClock
from headway.core.states import Lane, Outcome
from headway.execution import kill, process_pool
from headway.execution.attempt import Died
from headway.execution.process_factory import ProcessFactory
from headway.execution.process_pool import ProcessPool
from headway.execution.settings import SupervisorSettings

OPERATIONS = Path(__file__).with_name("operations.py")
RETIRING = {"descriptors", "thread", "limit", "niceness"}
"""Changes that cannot be undone: the process must be replaced."""
CHANGES = [
    "context",
    "descriptors",
    "directory",
    "environment",
    "interpreter",
    "limit",
    "locales",
    "logs",
    "loops",
    "niceness",
    "signals",
    "sockets",
    "streams",
    "temp",
    "thread",
    "umask",
]


async def test_a_process_is_used_again(make_bench) -> None:
    async with make_bench() as bench:
        pids = [await bench.value("pid") for _ in range(5)]
        assert len(set(pids)) == 1
        assert bench.supervisor.statistics()["warm_idle"] == 1


def test_the_list_of_changes_is_complete() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("execution_operations_checked", OPERATIONS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert sorted(CHANGES) == module.CHANGES


async def test_nothing_of_a_job_reaches_the_next(make_bench) -> None:
    """Trap 12, as a property: any set of changes, then a look by the next job."""
    async with make_bench() as bench:
        untouched = await bench.value("observe")
        loop = asyncio.get_running_loop()

        async def check(names: list[str]) -> None:
            changed = await bench.value("change", {"names": names})
            after = await bench.value("observe")
            assert after == untouched, names
            if RETIRING & set(names):
                assert await bench.value("pid") != changed
            else:
                assert await bench.value("pid") == changed, "undone, so the process is kept"

        @settings(
            max_examples=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=[HealthCheck.function_scoped_fixture],
        )
        @given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5, unique=True))
        def property_(names: list[str]) -> None:
            asyncio.run_coroutine_threadsafe(check(names), loop).result(60)

        for name in CHANGES:
            await check([name])
        await asyncio.to_thread(property_)


async def test_a_death_costs_one_job_and_one_process(make_bench) -> None:
    """Trap 2: 7 of 7 jobs failed with one dead pool process."""
    async with make_bench() as bench:
        await bench.value("echo")
        others = [await bench.start("echo", {"value": n}) for n in range(4)]
        dead = await bench.run("kills_itself", {"number": signal.SIGKILL}, lane="short")
        assert isinstance(dead.ending, Died)
        for running, _ in others:
            assert (await running.wait()).outcome is Outcome.SUCCEEDED
        assert await bench.value("echo", {"value": 1}) == 1


async def test_a_cancelled_process_is_not_used_again(make_bench) -> None:
    """Trap 5: a signal for one job must not reach the next in the same process."""
    async with make_bench() as bench:
        running, recorder = await bench.start("sleep", lane="short")
        await recorder.started.wait()
        await running.cancel()
        assert await bench.value("pid") != running.pid


async def test_a_process_is_replaced_after_its_number_of_jobs(make_bench) -> None:
    async with make_bench(warm_max_jobs=3) as bench:
        pids = [await bench.value("pid") for _ in range(6)]
        assert pids[0] == pids[1] == pids[2]
        assert pids[3] == pids[4] == pids[5]
        assert pids[0] != pids[3]


async def test_a_process_that_grew_is_replaced(make_bench) -> None:
    async with make_bench(warm_max_growth_bytes=30 << 20) as bench:
        first = await bench.value("grows", {"megabytes": 1})
        assert await bench.value("grows", {"megabytes": 40}) == first
        assert await bench.value("pid") != first


async def test_an_idle_process_that_dies_costs_nothing(make_bench, tools) -> None:
    async with make_bench() as bench:
        pid = await bench.value("pid")
        os.kill(pid, signal.SIGKILL)
        assert await bench.value("pid") != pid
        await tools.eventually(lambda: bench.supervisor.statistics()["warm_idle"] == 1)


async def test_a_cache_lives_for_one_attempt(make_bench) -> None:
    """J12."""
    async with make_bench() as bench:
        one = await bench.value("cached", job_id="one")
        two = await bench.value("cached", job_id="two")
        assert one == ["a of one"] * 2
        assert two == ["a of two"] * 2


async def test_no_more_than_the_wanted_number_stays_warm(make_bench) -> None:
    async with make_bench(warm_processes=2) as bench:
        running = [await bench.start("sleep", {"seconds": 0.3}, lane="short") for _ in range(5)]
        assert len({one.pid for one, _ in running if one.pid}) in (0, 5)
        for one, _ in running:
            await one.wait()
        assert bench.supervisor.statistics()["warm_idle"] == 2


async def test_brief_attempts_take_turns_on_the_processes_that_are_kept(
    make_bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P11 without the memory of a process for each slot (P13)."""
    monkeypatch.setattr(process_pool, "WARM_WAIT_S", 600.0)
    async with make_bench(warm_processes=2, spare_processes=0) as bench:
        pids = await asyncio.gather(*(bench.value("pid") for _ in range(12)))
        assert len(set(pids)) == 2
        assert bench.supervisor.statistics()["forks"] == 2


async def test_who_waits_for_a_busy_process_too_long_gets_another(
    make_bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap 9: a slot that is free is no use behind a process that is not."""
    monkeypatch.setattr(process_pool, "WARM_WAIT_S", 0.01)
    async with make_bench(warm_processes=1, spare_processes=0) as bench:
        running = [await bench.start("sleep", {"seconds": 600}, lane="short") for _ in range(3)]
        async with asyncio.timeout(60):
            for _, recorder in running:
                await recorder.started.wait()  # none has ended
        for one, _ in running:
            await one.cancel(grace_s=0)


async def test_a_process_beyond_those_kept_goes_when_attempts_are_brief_again(
    make_bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_bench(warm_processes=1, spare_processes=0) as bench:
        monkeypatch.setattr(process_pool, "WARM_WAIT_S", 0.0)
        lasting, begun = await bench.start("sleep", {"seconds": 600}, lane="short")
        await begun.started.wait()
        brief = await bench.value("pid")
        assert bench.supervisor.statistics()["warm_idle"] == 1  # brief by no measure: 0 s
        monkeypatch.setattr(process_pool, "WARM_WAIT_S", 600.0)
        assert await bench.value("pid") == brief
        assert bench.supervisor.statistics()["warm_idle"] == 0
        await lasting.cancel(grace_s=0)


async def test_who_waits_for_a_process_that_dies_gets_another(
    make_bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap 2: a death costs the attempt that it hits, and nobody behind it."""
    monkeypatch.setattr(process_pool, "WARM_WAIT_S", 600.0)
    async with make_bench(warm_processes=1, spare_processes=0) as bench:
        dies, recorder = await bench.start("sleep", {"seconds": 600}, lane="short")
        await recorder.started.wait()
        waits = [asyncio.ensure_future(bench.value("pid")) for _ in range(3)]
        await asyncio.sleep(0)
        os.kill(dies.pid, signal.SIGKILL)
        assert isinstance((await dies.wait()).ending, Died)
        pids = await asyncio.gather(*waits)
        assert len(set(pids)) == 1
        assert dies.pid not in pids


@pytest.mark.serial
async def test_memory_stays_flat_over_many_jobs(make_bench) -> None:
    """J12: measured over 1,000 jobs here, over 10,000 by benchmarks/jobs."""
    async with make_bench(warm_max_jobs=100_000) as bench:
        for _ in range(300):
            await bench.value("echo", {"value": "x" * 1000})
        first = await bench.run("echo", {"value": 1})
        for _ in range(1000):
            await bench.value("echo", {"value": "x" * 1000})
        last = await bench.run("echo", {"value": 1})
        assert first.pid == last.pid
        assert last.usage.peak_rss_bytes < first.usage.peak_rss_bytes + (2 << 20)


async def test_a_cancel_at_the_end_of_an_attempt_does_not_hit_the_next(
    make_bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap 5: between the end of a job and its result the process may have the next job.

    Nor is a process waited for that itself waits for its next job: that once took 5 s.
    """
    monkeypatch.setattr(kill, "KILL_LIMIT_S", 600.0)
    async with make_bench(warm_processes=1) as bench, asyncio.timeout(60):
        hit = 0
        for _ in range(12):
            ended, recorder = await bench.start("echo", {"value": 1})
            await recorder.started.wait()
            following = asyncio.ensure_future(bench.run("echo", {"value": 2}))
            await asyncio.sleep(0)
            await ended.cancel(grace_s=0)
            hit += (await following).outcome is not Outcome.SUCCEEDED
        assert hit == 0


async def test_a_process_given_to_an_attempt_that_is_cancelled_serves_the_next() -> None:
    """It counted as busy for ever, and with it a place of the kept ones was gone."""
    wanted = SupervisorSettings(modules=(str(OPERATIONS),), warm_processes=1, spare_processes=0)
    factory = ProcessFactory(wanted, SystemClock())
    await factory.open()
    pool = ProcessPool(factory, wanted)
    try:
        busy = await pool.take(Lane.SHORT)
        waits = asyncio.ensure_future(pool.take(Lane.SHORT))
        await asyncio.sleep(0)
        pool.give_back(busy)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert pool.counts()["warm_idle"] == 1
        assert await pool.take(Lane.SHORT) is busy
    finally:
        await pool.close()
        await factory.close()

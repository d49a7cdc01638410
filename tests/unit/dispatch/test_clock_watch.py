"""The watch over the wall clock, with a real store."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.dispatch.clock_watch import ClockWatch
from headway.dispatch.doorbell import WORK, Board
from headway.store.attempts import RetryLater
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

JOB = NewJob(operation="op", lane="long", input_json="{}")
PAUSE = RetryLater(outcome=Outcome.FAILED, delay_s=30, reason="not yet")


@pytest.mark.parametrize(("seconds", "claimed"), [(-7200, 1), (-0.5, 0), (7200, 1), (20, 0)])
async def test_only_a_clock_that_was_set_back_ends_a_backoff(
    tmp_path: Path, seconds: float, claimed: int
) -> None:
    clock = ManualClock(datetime(2026, 11, 30, tzinfo=UTC))
    store = SqliteStore(StateDir(tmp_path), clock, random.Random(1))
    await store.open()
    board = Board()
    watch = ClockWatch(store, board, clock)
    await watch.step()
    await store.submit([JOB])
    [first] = await store.claim("w1", {"long": 1}, 60)
    await store.end_attempt(first.claim, PAUSE)
    with board.listen(WORK) as bell:
        clock.set_by(seconds)
        await watch.step()
        assert await bell.wait(0) is (seconds == -7200)
    assert len(await store.claim("w1", {"long": 1}, 60)) == claimed
    await store.close()


async def test_the_first_look_finds_what_was_set_back_while_no_worker_ran(tmp_path: Path) -> None:
    clock = ManualClock(datetime(2026, 11, 30, tzinfo=UTC))
    store = SqliteStore(StateDir(tmp_path), clock, random.Random(1))
    await store.open()
    await store.submit([JOB])
    [first] = await store.claim("w1", {"long": 1}, 60)
    await store.end_attempt(first.claim, PAUSE)
    clock.set_by(-86400)
    await ClockWatch(store, Board(), clock).step()
    assert len(await store.claim("w1", {"long": 1}, 60)) == 1
    await store.close()

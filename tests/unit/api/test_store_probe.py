"""A store that can be read and not written is said to be so: by readiness, by `why`."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

from headway.api.readiness import NotReady, Readiness
from headway.api.store_probe import StoreProbe
from headway.core.clock import ManualClock
from headway.core.errors import StoreUnavailable
from headway.store.store import Store


class OneRow:
    """The part of a store that the probe writes to."""

    def __init__(self, error: str | None = None) -> None:
        self.error = error
        self.writes = 0
        self.locked = False

    async def record_period(self, name: str, due: datetime) -> None:
        self.writes += 1
        if self.locked:
            await asyncio.sleep(3600)
        if self.error is not None:
            raise StoreUnavailable(self.error)


def probe_of(row: OneRow, clock: ManualClock | None = None, **times: float) -> StoreProbe:
    clock = clock or ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    return StoreProbe(cast(Store, row), clock, **times)


async def test_a_read_only_store_is_named() -> None:
    trouble = await probe_of(OneRow("attempt to write a readonly database")).trouble()
    assert trouble == "the store cannot be written: attempt to write a readonly database"


async def test_a_lock_that_is_not_given_back_is_named() -> None:
    row = OneRow()
    row.locked = True
    trouble = await probe_of(row, limit_s=0.05).trouble()
    assert trouble is not None
    assert "another process holds its lock" in trouble


async def test_many_who_ask_cost_one_write_and_the_answer_grows_old() -> None:
    clock, row = ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), OneRow("full")
    probe = probe_of(row, clock, keep_s=2.0)
    answers = await asyncio.gather(*(probe.trouble() for _ in range(50)))
    assert row.writes == 1
    assert set(answers) == {"the store cannot be written: full"}
    row.error = None
    clock.advance(2.5)
    assert await probe.trouble() is None
    assert row.writes == 2


async def test_a_worker_that_is_missing_comes_before_the_store() -> None:
    row = OneRow()
    readiness = Readiness(lambda: NotReady.STARTING, probe_of(row))
    assert await readiness.obstacle() == "the worker process is starting"
    assert row.writes == 0


async def test_why_names_what_keeps_every_job_waiting(api: Any) -> None:
    """The disk is full: reads go on, and the one who asks is told."""
    job = await api.submit("nothing")

    async def full(name: str, due: datetime) -> None:
        raise StoreUnavailable("database or disk is full")

    api.store.record_period = full
    why = (await api.http.get(f"/v1/jobs/{job}/why")).json()
    assert why["reason"] == "queued"
    assert why["text"].endswith("the store cannot be written: database or disk is full")

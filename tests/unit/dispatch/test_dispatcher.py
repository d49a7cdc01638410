"""Draining a dispatcher, at the moments at which that is not simple (J18)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.core.states import JobState, Lane
from headway.dispatch.dispatcher import Dispatcher, DispatchSettings
from headway.dispatch.inline_attempt import InlineSupervisor
from headway.dispatch.lane_host import LaneHost
from headway.dispatch.lanes import LaneSize, LaneSlots
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry
from headway.store.attempts import ClaimedJob
from headway.store.submissions import NewJob

OWNER = "worker:a:b:1:2:c"
FOREVER = NewJob(operation="forever", lane="inline", input_json="{}")


async def forever(job: Any) -> None:
    await asyncio.sleep(3600)


class LateAnswers:
    """A store whose claims are committed long before their answer comes."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.committed = asyncio.Event()
        self.answer = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, owner: str, lanes: Mapping[str, int], lease_s: float) -> list[ClaimedJob]:
        claimed: list[ClaimedJob] = await self._store.claim(owner, lanes, lease_s)
        if claimed:
            self.committed.set()
            await self.answer.wait()
        return claimed


def dispatcher_of(host: LaneHost) -> tuple[Dispatcher, InlineSupervisor]:
    registry = Registry()
    registry.add(Operation(name="forever", function=forever, grace_s=0.2))
    supervisor = InlineSupervisor(registry, host.state_dir, host.clock)
    services = host.services(OWNER, supervisor, lease_s=10.0, log_bytes=None)
    lanes = {Lane.INLINE: LaneSlots(LaneSize(4, 0), lambda: 0)}
    return Dispatcher(services, lanes, DispatchSettings(owner=OWNER, lease_s=10.0)), supervisor


@pytest.mark.parametrize("limit_s", [0.0, 30.0])
async def test_a_drain_gives_back_what_is_claimed_while_it_begins(
    host: LaneHost, jobs: Any, limit_s: float
) -> None:
    """A claim's answer came behind the drain; its jobs were ended as cancelled by nobody."""
    store = LateAnswers(host.store)
    dispatcher, _ = dispatcher_of(replace(host, store=store))  # type: ignore[arg-type]
    running = asyncio.create_task(dispatcher.run())
    (job,) = await jobs.submit(FOREVER)
    async with asyncio.timeout(30):
        await store.committed.wait()
        draining = asyncio.create_task(dispatcher.drain(limit_s, 0.1))
        await asyncio.sleep(0)
        assert not draining.done(), "it waits for the answer"
        store.answer.set()
        await draining
        dispatcher.stop()
        await running
    row = await jobs.get(job)
    assert (row.state, row.attempt, row.released) == (JobState.PENDING, 1, 1)


async def test_an_attempt_that_is_stopped_though_nobody_asked_for_its_cancel_is_given_back(
    host: LaneHost, jobs: Any, tmp_path: Path
) -> None:
    """A supervisor that closes stops what runs; that makes no cancelled job."""
    dispatcher, supervisor = dispatcher_of(host)
    started = []
    start = supervisor.start

    async def remember(*arguments: Any) -> Any:
        started.append(await start(*arguments))
        return started[-1]

    supervisor.start = remember  # type: ignore[method-assign]
    running = asyncio.create_task(dispatcher.run())
    (job,) = await jobs.submit(FOREVER)
    await jobs.until(job, lambda row: row.state is JobState.RUNNING)
    async with asyncio.timeout(30):
        while not started:  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
        await started[0].cancel(0.1, "closing")
        await jobs.until(job, lambda row: row.released >= 1)
        await dispatcher.drain(0.0, 0.1)
        dispatcher.stop()
        await running
    assert (await jobs.get(job)).state is JobState.PENDING

"""When a job that waits for a concurrency key will run (N5, J25)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from headway.api.estimate import estimated_start
from headway.store.jobs import JobRow, Progress
from headway.store.limits import Limit

INPUT = {"model": "llama"}
MINUTE = timedelta(minutes=1)


async def held_key(api: Any, waiting: int = 1) -> tuple[Any, list[str]]:
    """A claimed job that holds a key, and jobs in line for it."""
    await api.submit("train", input=INPUT, concurrency_key="gpu")
    holder = await api.claim()
    return holder, [
        await api.submit("train", input=INPUT, concurrency_key="gpu") for _ in range(waiting)
    ]


async def estimate(api: Any, job_id: str, now: datetime) -> datetime | None:
    why = await api.store.why(job_id)
    return await estimated_start(api.store, why, now)


async def started_at(api: Any, job_id: str) -> datetime:
    row = await api.store.find(job_id)
    assert isinstance(row, JobRow)
    assert row.started_at is not None
    return row.started_at


async def test_the_holders_progress_tells_when_it_will_end(api: Any) -> None:
    holder, [waiting] = await held_key(api)
    began = await started_at(api, holder.job.id)
    assert await estimate(api, waiting, began + MINUTE) is None, "nobody can tell yet"
    await api.store.progress(holder.claim, Progress(fraction=0.25))
    assert await estimate(api, waiting, began + MINUTE) == began + 4 * MINUTE


async def test_a_holder_that_takes_longer_than_thought_ends_any_moment(api: Any) -> None:
    holder, [waiting] = await held_key(api)
    began = await started_at(api, holder.job.id)
    await api.store.progress(holder.claim, Progress(fraction=1.0))
    assert await estimate(api, waiting, began + MINUTE) == began + MINUTE


async def test_those_in_line_before_it_count(api: Any) -> None:
    holder, [_, _, third] = await held_key(api, waiting=3)
    began = await started_at(api, holder.job.id)
    await api.store.progress(holder.claim, Progress(fraction=0.5))
    # One minute of the holder's two is left, and two more jobs of two minutes each.
    assert await estimate(api, third, began + MINUTE) == began + 6 * MINUTE


async def test_without_progress_earlier_jobs_tell(api: Any) -> None:
    await api.submit("train", input=INPUT)
    earlier = await api.claim()
    await api.finish(earlier)
    row = await api.store.find(earlier.job.id)
    took = row.ended_at - row.started_at
    holder, [waiting] = await held_key(api)
    began = await started_at(api, holder.job.id)
    assert await estimate(api, waiting, began) == began + took


async def test_where_nothing_runs_nobody_can_tell(api: Any) -> None:
    job_id = await api.submit("train", input=INPUT)
    answer = (await api.http.get(f"/v1/jobs/{job_id}/why")).json()
    assert answer["reason"] == "queued"
    assert answer["estimated_start"] is None


async def test_a_queued_job_starts_when_those_before_it_have_had_their_turn(api: Any) -> None:
    """As many at a time as run now, each for as long as its operation usually takes."""
    await api.submit("train", input=INPUT)
    holder = await api.claim()
    began = await started_at(api, holder.job.id)
    *_, third = [await api.submit("train", input=INPUT) for _ in range(3)]
    await api.store.progress(holder.claim, Progress(fraction=0.5))
    assert await estimate(api, third, began + MINUTE) == began + 6 * MINUTE
    await api.claim()  # two run at a time now
    sooner = await estimate(api, third, began + MINUTE)
    assert sooner is not None
    assert sooner < began + 6 * MINUTE


async def test_without_history_nobody_can_tell(api: Any) -> None:
    await api.submit("train", input=INPUT)
    holder = await api.claim()
    job_id = await api.submit("train", input=INPUT)
    began = await started_at(api, holder.job.id)
    assert await estimate(api, job_id, began + MINUTE) is None


async def test_at_a_running_limit_the_limits_own_jobs_count(api: Any) -> None:
    await api.store.limits.set(Limit(workspace="default", max_running=1))
    await api.submit("train", input=INPUT)
    holder = await api.claim()
    await api.store.progress(holder.claim, Progress(fraction=0.5))
    job_id = await api.submit("train", input=INPUT)
    began = await started_at(api, holder.job.id)
    assert await estimate(api, job_id, began + MINUTE) == began + 2 * MINUTE


async def test_the_api_says_it(api: Any) -> None:
    holder, [waiting] = await held_key(api)
    await api.store.progress(holder.claim, Progress(fraction=0.5))
    answer = (await api.http.get(f"/v1/jobs/{waiting}/why")).json()
    assert answer["holders"] == [holder.job.id]
    assert datetime.fromisoformat(answer["estimated_start"]) > await started_at(api, holder.job.id)

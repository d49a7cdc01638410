"""Reading, waiting for, cancelling and retrying jobs."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.core.states import Outcome
from headway.store.attempts import Finish
from headway.store.jobs import StoredResult

TRAIN = {"model": "llama"}


async def get(api: Any, path: str, status: int = 200) -> Any:
    answer = await api.http.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


async def until(condition: Any, timeout_s: float = 60.0) -> None:
    """Poll a condition that nothing announces, with a deadline."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 -- nothing announces it
            await asyncio.sleep(0.01)


async def test_an_unambiguous_prefix_stands_for_the_id(api: Any) -> None:
    job_id = await api.submit("nothing")
    assert (await get(api, f"/v1/jobs/{job_id[:10]}"))["id"] == job_id
    assert (await get(api, f"/v1/jobs/{job_id.upper()}"))["id"] == job_id


async def test_an_ambiguous_prefix_is_refused_with_examples(api: Any) -> None:
    ids = [await api.submit("nothing") for _ in range(2)]
    refusal = await get(api, f"/v1/jobs/{ids[0][:1]}", 409)
    assert all(job_id in refusal["detail"] for job_id in ids)


async def test_a_job_that_is_not_there_is_answered_404(api: Any) -> None:
    for reference in ("zzzz", "0" * 26, "0" * 64):
        for part in ("", "/events", "/why", "/result", "/trace", "/logs", "/logs/stream"):
            refusal = await get(api, f"/v1/jobs/{reference}{part}", 404)
            assert "there is no job" in refusal["detail"]


async def test_the_list_is_newest_first_in_pages(api: Any) -> None:
    ids = [await api.submit("nothing") for _ in range(5)]
    seen: list[str] = []
    path = "/v1/jobs?limit=2"
    while True:
        page = await get(api, path)
        seen += [job["id"] for job in page["jobs"]]
        if page["next_cursor"] is None:
            break
        path = f"/v1/jobs?limit=2&cursor={page['next_cursor']}"
    assert seen == ids[::-1]


async def test_the_list_is_filtered(api: Any) -> None:
    await api.submit("nothing", labels={"team": "a"})
    blue = await api.submit("greet", labels={"team": "a", "colour": "blue=ish"})
    running = (await api.claim()).job.id
    wanted = {
        "label=team%3Da&label=colour%3Dblue%3Dish": [blue],
        "operation=greet": [blue],
        "state=RUNNING": [running],
        "state=SUCCEEDED&state=FAILED": [],
        "mine=true&operation=greet": [blue],
        "created_by=somebody": [],
    }
    for query, ids in wanted.items():
        page = await get(api, f"/v1/jobs?{query}")
        assert [job["id"] for job in page["jobs"]] == ids, query


async def test_only_the_fields_that_were_asked_for(api: Any) -> None:
    job_id = await api.submit("nothing")
    page = await get(api, "/v1/jobs?fields=id,operation")
    assert page["jobs"] == [{"id": job_id, "operation": "nothing"}]
    assert (await get(api, "/v1/jobs?fields=id,secret", 422))["errors"][0]["path"] == "query.fields"


async def test_a_filter_that_does_not_exist_is_refused(api: Any) -> None:
    """A misspelt filter that is ignored would list everything."""
    await get(api, "/v1/jobs?states=RUNNING", 422)


async def test_waiting_ends_with_the_job_and_not_with_a_poll(api: Any) -> None:
    """Trap 17: the answer comes by doorbell; the backup poll of this server is 1 s."""
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    waiting = asyncio.create_task(api.http.get(f"/v1/jobs/{job_id}/result?wait=30s"))
    await until(lambda: api.live.watched == 1)
    await api.finish(claimed, '{"loss":0.25}')
    answer = (await asyncio.wait_for(waiting, 0.9)).json()
    assert answer["result"] == {"loss": 0.25}
    assert answer["job"]["state"] == "SUCCEEDED"
    await until(lambda: api.live.watched == 0)


async def test_a_lost_ring_costs_latency_and_no_result(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    waiting = asyncio.create_task(api.http.get(f"/v1/jobs/{job_id}?wait=30s"))
    await until(lambda: api.live.watched == 1)
    finish = Finish(outcome=Outcome.SUCCEEDED)
    await api.store.end_attempt(claimed.claim, finish)  # and nobody rings
    assert (await asyncio.wait_for(waiting, 10)).json()["state"] == "SUCCEEDED"


async def test_an_unended_job_is_answered_202_when_the_time_is_over(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    body = await get(api, f"/v1/jobs/{job_id}/result?wait=50ms", 202)
    assert body["job"]["state"] == "PENDING"
    assert body["result"] is None


async def test_a_wait_that_is_no_time_is_refused(api: Any) -> None:
    job_id = await api.submit("nothing")
    for wait in ("soon", "-1s", "1h", "nan", "1e9", ""):
        refusal = await get(api, f"/v1/jobs/{job_id}?wait={wait}", 422)
        assert refusal["errors"][0]["path"] == "query.wait", wait


async def test_a_client_that_hangs_up_leaves_no_waiter(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    waiting = asyncio.create_task(api.http.get(f"/v1/jobs/{job_id}?wait=30s"))
    await until(lambda: api.live.watched == 1)
    waiting.cancel()
    await until(lambda: api.live.watched == 0)


async def test_submit_with_wait_answers_with_the_result(api: Any) -> None:
    submitting = asyncio.create_task(
        api.http.post("/v1/operations/train?wait=30s", json={"input": TRAIN})
    )
    await until(lambda: api.live.watched == 1)
    await api.finish(await api.claim(), '{"loss":1}')
    answer = await submitting
    assert answer.status_code == 200
    assert answer.json()["result"] == {"loss": 1}


async def test_a_large_result_is_sent_from_its_file(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    claimed = await api.claim()
    path = api.state_dir.job_results(job_id) / "1.json"
    path.parent.mkdir(parents=True)
    path.write_text('"' + "x" * 3_000_000 + '"')
    result = StoredResult(file=str(path.relative_to(api.state_dir.root)))
    await api.store.end_attempt(claimed.claim, Finish(outcome=Outcome.SUCCEEDED, result=result))
    assert len((await get(api, f"/v1/jobs/{job_id}/result"))["result"]) == 3_000_000


async def test_cancelling_twice_and_cancelling_what_ended_is_no_error(api: Any) -> None:
    """J6: idempotent; a terminal state stays (trap 6)."""
    job_id = await api.submit(input=TRAIN)
    answers = [await api.http.post(f"/v1/jobs/{job_id}/cancel") for _ in range(2)]
    assert [answer.json()["state"] for answer in answers] == ["CANCELLED"] * 2
    done = await api.submit(input=TRAIN)
    await api.finish(await api.claim())
    answer = await api.http.post(f"/v1/jobs/{done}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "SUCCEEDED")


async def test_cancelling_a_running_job_stores_the_intent_and_rings(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    await api.claim()
    with api.doorbell.listen("cancel") as bell:
        answer = await api.http.post(f"/v1/jobs/{job_id}/cancel")
        assert answer.json()["cancel_requested_at"] is not None
        assert answer.json()["state"] == "RUNNING"
        assert await bell.wait(5)


async def test_retrying_an_ended_job_makes_a_new_one(api: Any) -> None:
    job_id = await api.submit(input=TRAIN, labels={"team": "a"})
    assert (await api.http.post(f"/v1/jobs/{job_id}/retry")).status_code == 409
    await api.http.post(f"/v1/jobs/{job_id}/cancel")
    answers = [
        await api.http.post(f"/v1/jobs/{job_id}/retry", headers={"idempotency-key": "again"})
        for _ in range(2)
    ]
    again = answers[0].json()
    assert answers[1].json()["id"] == again["id"] != job_id
    assert again["retry_of"] == job_id
    assert again["labels"] == {"team": "a"}
    assert (await get(api, f"/v1/jobs/{job_id}"))["state"] == "CANCELLED"


async def test_events_tell_the_jobs_history(api: Any) -> None:
    job_id = await api.submit(input=TRAIN)
    await api.finish(await api.claim())
    events = (await get(api, f"/v1/jobs/{job_id}/events"))["events"]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert len(events) >= 3
    later = (await get(api, f"/v1/jobs/{job_id}/events?after=1"))["events"]
    assert later == events[1:]


async def test_why_gives_the_position(api: Any) -> None:
    ids = [await api.submit(input=TRAIN) for _ in range(3)]
    why = await get(api, f"/v1/jobs/{ids[2]}/why")
    assert (why["reason"], why["position"], why["job_id"]) == ("queued", 3, ids[2])


async def test_the_trace_has_waiting_and_running_on_their_tracks(api: Any) -> None:
    """J15: the timeline as an exportable trace."""
    job_id = await api.submit(input=TRAIN)
    await api.finish(await api.claim())
    trace = await get(api, f"/v1/jobs/{job_id}/trace")
    tracks = {(event["name"], event["tid"]) for event in trace["traceEvents"]}
    assert {("waited", 0), ("attempt", 1)} <= tracks
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in trace["traceEvents"])


async def test_paths_and_methods_that_do_not_exist_are_problems(api: Any) -> None:
    assert (await get(api, "/v1/nothing", 404))["detail"] == "there is nothing at /v1/nothing"
    answer = await api.http.delete("/v1/jobs")
    assert answer.status_code == 405
    assert answer.json()["detail"] == "DELETE is not possible at /v1/jobs"
    assert answer.headers["content-type"] == "application/problem+json"

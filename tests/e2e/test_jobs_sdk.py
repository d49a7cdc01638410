"""The SDK against a real server: synchronous and asynchronous, typed, bounded (J21)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from headway.client import (
    AsyncClient,
    Client,
    Conflict,
    DeadlineExceeded,
    InvalidRequest,
    Job,
    JobFailed,
    JobRequest,
    LogChunk,
    NotFound,
    RetryPolicy,
    ServerUnreachable,
    SubmitOptions,
)
from headway.core.states import JobState, Outcome


class Said(BaseModel):
    lines: int


def test_submit_follow_and_typed_result(server: Any) -> None:
    with server.client() as client:
        job = client.submit("talk", {"lines": 3})
        said = list(client.follow(job.id))
        assert (
            "".join(c.text for c in said if isinstance(c, LogChunk)) == "line 0\nline 1\nline 2\n"
        )
        last = said[-1]
        assert isinstance(last, Job)
        assert last.state is JobState.SUCCEEDED
        assert last.progress is not None
        assert last.progress.fraction == 1.0
        assert client.result(job.id, Said) == Said(lines=3)
        assert client.result(job.id) == {"lines": 3}


async def test_the_same_asynchronously(server: Any) -> None:
    async with AsyncClient(server.url) as client:
        jobs = await asyncio.gather(*(client.submit("talk", {"lines": n}) for n in range(1, 6)))
        results = await asyncio.gather(*(client.result(job.id, Said) for job in jobs))
        assert [result.lines for result in results] == [1, 2, 3, 4, 5]
        said = [each async for each in client.follow(jobs[1].id)]
        assert [each.text for each in said if isinstance(each, LogChunk)] == ["line 0\nline 1\n"]


def test_run_is_one_call_in_every_lane(server: Any) -> None:
    with server.client() as client:
        assert client.run("echo", {"text": "hi"}) == "hi"
        assert client.run("ping", model=str, input=None) == "pong"
        assert client.run("sleep", {"seconds": 0}, int) > 0


def test_a_batch_comes_back_in_its_order(server: Any) -> None:
    with server.client() as client:
        jobs = client.submit_batch(
            [JobRequest(operation="echo", input={"text": str(n)}) for n in range(50)]
        )
        assert [client.result(job.id) for job in jobs] == [str(n) for n in range(50)]


def test_a_failed_job_tells_type_message_and_traceback(server: Any) -> None:
    """J13."""
    with server.client() as client:
        job = client.submit("fail", {"message": "out of paper"})
        with pytest.raises(JobFailed, match="ValueError: out of paper") as caught:
            client.result(job.id)
        error = caught.value.job.error
        assert error is not None
        assert "raise ValueError(message)" in (error.traceback or "")


def test_a_crashed_attempt_is_run_again_and_both_logs_stay(server: Any) -> None:
    with server.client() as client:
        job = client.submit("crash_once")
        assert client.result(job.id) == 2
        assert "".join(client.logs(job.id)) == "attempt 1\nattempt 2\n"
        assert "".join(client.logs(job.id, attempt=1)) == "attempt 1\n"
        assert "".join(client.logs(job.id, follow=True, tail=1)) == "attempt 2\n"


def test_a_retried_job_leaves_its_artifact(server: Any) -> None:
    with server.client() as client:
        job = client.submit("again")
        assert client.wait(job.id).attempt == 2
        [artifact] = client.artifacts(job.id)
        assert (artifact.name, artifact.size_bytes, artifact.attempt) == ("report.txt", 9, 2)
        assert client.artifact(job.id, "report.txt") == b"all good\n"
        assert {"submitted", "claimed", "retry", "ended"} <= {e.kind for e in client.events(job.id)}


def test_cancel_ends_a_running_job_and_retry_makes_a_new_one(server: Any) -> None:
    with server.client() as client:
        job = client.submit("sleep", options=SubmitOptions(labels={"team": "a"}))
        next(chunk for chunk in client.follow(job.id) if isinstance(chunk, LogChunk))
        client.cancel(job.id)
        ended = client.wait(job.id, timeout_s=30)
        assert ended.outcome is Outcome.CANCELLED
        assert client.cancel(job.id).state is JobState.CANCELLED
        again = client.retry(job.id)
        assert again.retry_of == job.id
        assert again.labels == {"team": "a"}
        client.cancel(again.id)
        assert client.wait(again.id, timeout_s=30).is_ended
        page = client.list(labels={"team": "a"}, state=[JobState.CANCELLED])
        assert [each.id for each in page.jobs] == [again.id, job.id]


def test_waiting_has_a_deadline_and_the_job_goes_on(server: Any) -> None:
    with server.client() as client:
        job = client.submit("sleep")
        with pytest.raises(DeadlineExceeded):
            client.wait(job.id, timeout_s=0.2)
        assert not client.get(job.id).is_ended
        assert client.why(job.id).text
        client.cancel(job.id)


def test_refusals_are_their_own_classes(server: Any) -> None:
    with server.client() as client:
        with pytest.raises(NotFound, match="no operation 'nope'"):
            client.submit("nope")
        with pytest.raises(NotFound, match="there is no job"):
            client.get("zzz")
        with pytest.raises(InvalidRequest, match=r"input\.lines"):
            client.submit("talk", {"lines": "many"})
        key = "one-key"
        client.submit("echo", {"text": "a"}, idempotency_key=key)
        with pytest.raises(Conflict, match="belongs to another request"):
            client.submit("echo", {"text": "b"}, idempotency_key=key)


def test_operations_have_their_schemas(server: Any) -> None:
    with server.client() as client:
        talk = next(each for each in client.operations() if each.name == "talk")
    assert talk.input_schema is not None
    assert set(talk.input_schema["properties"]) == {"lines", "pause_s"}


def test_a_server_that_is_not_there_is_said_within_the_patience() -> None:
    """Trap 24: no endless retries."""
    with (
        Client("http://127.0.0.1:9", retry=RetryPolicy(patience_s=0.3)) as client,
        pytest.raises(
            ServerUnreachable, match=r"does not answer: ConnectError.*, at http://127\.0\.0\.1:9$"
        ),
    ):
        client.operations()

"""What each call sends, and what it makes of the answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from headway.client.errors import DeadlineExceeded, InvalidRequest, JobFailed
from headway.client.flows import Flows, list_query
from headway.client.models import JobRequest, SubmitOptions
from headway.client.retrying import Retrier, RetryPolicy
from headway.client.steps import Call, Lost, Pause, Reply
from headway.core.clock import ManualClock
from headway.core.states import JobState

JOB: dict[str, Any] = {
    "id": "abc", "operation": "train", "lane": "long", "state": "RUNNING",
    "created_by": "local", "workspace": "default", "created_at": "2026-01-01T00:00:00Z",
}  # fmt: skip
ENDED = JOB | {"state": "SUCCEEDED", "outcome": "succeeded"}


def answered(status: int, body: Any) -> Reply:
    return Reply(status, {}, json.dumps(body).encode())


class Conversation:
    """Runs flows against scripted answers; each waiting call takes the time it asks for."""

    def __init__(self, *answers: Reply | Lost) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.flows = Flows(Retrier(RetryPolicy(), self.clock, random.Random(3)), self.clock)
        self.answers: Iterator[Reply | Lost] = iter(answers)
        self.calls: list[Call] = []

    def run(self, flow: Any) -> Any:
        answer: Reply | Lost | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = self._do(step)

    def _do(self, step: Call | Pause) -> Reply | Lost | None:
        if isinstance(step, Pause):
            self.clock.advance(step.seconds)
            return None
        self.calls.append(step)
        waited = dict(step.query).get("wait", "0s")
        self.clock.advance(float(waited.removesuffix("s")))
        return next(self.answers)


def test_a_submission_repeats_with_the_same_key_after_a_lost_answer() -> None:
    """J14: the second POST carries the first one's Idempotency-Key."""
    talk = Conversation(Lost("ReadError"), answered(202, JOB))
    job = talk.run(talk.flows.submit("train", {"epochs": 3}, SubmitOptions(priority=2), None))
    first, second = talk.calls
    assert job.id == "abc"
    assert first == second
    assert first.headers["idempotency-key"]
    assert json.loads(first.body or b"") == {"input": {"epochs": 3}, "priority": 2}


def test_two_submissions_have_different_keys() -> None:
    talk = Conversation(answered(202, JOB), answered(202, JOB))
    for _ in range(2):
        talk.run(talk.flows.submit("train", None, SubmitOptions(), None))
    assert talk.calls[0].headers != talk.calls[1].headers
    assert json.loads(talk.calls[0].body or b"") == {}


def test_each_job_of_a_batch_has_a_key_of_its_own() -> None:
    talk = Conversation(answered(202, {"jobs": [JOB, JOB]}))
    talk.run(talk.flows.submit_batch([JobRequest(operation="train", input={"epochs": 1})] * 2))
    jobs = json.loads(talk.calls[0].body or b"")["jobs"]
    assert len({job["idempotency_key"] for job in jobs}) == 2


def test_a_name_cannot_lead_to_another_path() -> None:
    talk = Conversation(answered(202, JOB))
    talk.run(talk.flows.get("../operations?x=1"))
    assert talk.calls[0].path == "/v1/jobs/..%2Foperations%3Fx%3D1"


def test_waiting_asks_again_until_the_job_has_ended() -> None:
    talk = Conversation(answered(200, JOB), answered(200, JOB), answered(200, ENDED))
    assert talk.run(talk.flows.wait("abc", None)).is_ended
    assert [dict(call.query)["wait"] for call in talk.calls] == ["30.000s"] * 3
    assert all(call.read_timeout_s > 30 for call in talk.calls)


def test_waiting_has_a_deadline() -> None:
    talk = Conversation(*[answered(200, JOB)] * 10)
    with pytest.raises(DeadlineExceeded, match="has not ended after 70"):
        talk.run(talk.flows.wait("abc", 70.0))
    assert [dict(call.query)["wait"] for call in talk.calls] == ["30.000s", "30.000s", "10.000s"]


class Trained(BaseModel):
    loss: float


def test_a_result_is_validated_as_the_model_asked_for() -> None:
    talk = Conversation(answered(200, {"job": ENDED, "result": {"loss": 0.5}}))
    assert talk.run(talk.flows.result("abc", Trained, None)) == Trained(loss=0.5)


def test_the_result_of_a_failed_job_raises_how_it_failed() -> None:
    failed = JOB | {
        "state": "FAILED", "outcome": "out_of_memory",
        "error": {"type": "OutOfMemory", "message": "the kernel killed it"},
    }  # fmt: skip
    talk = Conversation(answered(200, {"job": failed, "result": None}))
    with pytest.raises(JobFailed, match="out_of_memory: OutOfMemory: the kernel killed it"):
        talk.run(talk.flows.result("abc", None, None))


def test_run_takes_one_call_when_the_job_ends_at_once() -> None:
    talk = Conversation(answered(200, {"job": ENDED, "result": 7}))
    assert talk.run(talk.flows.run("train", None, SubmitOptions(), None, 10.0)) == 7
    assert len(talk.calls) == 1


def test_run_goes_on_waiting_for_a_longer_job() -> None:
    talk = Conversation(
        answered(202, JOB), answered(202, {"job": JOB}), answered(200, {"job": ENDED, "result": 7})
    )
    assert talk.run(talk.flows.run("train", None, SubmitOptions(), None, None)) == 7
    assert [call.method for call in talk.calls] == ["POST", "GET", "GET"]


def test_a_refused_field_is_named_in_the_error() -> None:
    problem = {
        "title": "A field is wrong", "status": 422, "detail": "see the fields",
        "errors": [{"path": "input.epochs", "message": "Input should be a valid integer"}],
    }  # fmt: skip
    talk = Conversation(answered(422, problem))
    with pytest.raises(InvalidRequest, match=r"input\.epochs: Input should be a valid integer"):
        talk.run(talk.flows.submit("train", {"epochs": "x"}, SubmitOptions(), None))


def test_filters_become_repeated_parameters() -> None:
    query = list_query(
        state=[JobState.RUNNING, JobState.PENDING], labels={"team": "a,b"}, mine=True, limit=5
    )
    assert list(query) == [
        ("state", "RUNNING"), ("state", "PENDING"), ("label", "team=a,b"), ("mine", "true"),
        ("limit", "5"),
    ]  # fmt: skip

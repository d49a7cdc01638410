"""A followed stream that breaks: where it goes on, and when it is given up (J20)."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import pytest

from headway.client.errors import NotFound, ServerUnreachable
from headway.client.flows import follow_call, log_query
from headway.client.following import FollowCursor, LogChunk
from headway.client.models import Job
from headway.client.retrying import Retrier, RetryPolicy
from headway.client.steps import Lost, Reply
from headway.core.clock import ManualClock

BROKEN = Lost("RemoteProtocolError")


def cursor(clock: ManualClock, patience_s: float = 10.0) -> FollowCursor:
    policy = RetryPolicy(patience_s=patience_s)
    opening = follow_call("abc", log_query(tail=5))
    return FollowCursor(opening, Retrier(policy, clock, random.Random(1)), policy, clock)


def log_event(attempt: int, text: str, offset: int) -> bytes:
    data = json.dumps({"attempt": attempt, "text": text})
    return f"event: log\ndata: {data}\nid: {attempt}:{offset}\n\n".encode()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 1, 1, tzinfo=UTC))


def test_the_first_connection_asks_for_no_position(clock: ManualClock) -> None:
    call = cursor(clock).call()
    assert "last-event-id" not in call.headers
    assert list(call.query) == [("tail", "5")]


def test_a_new_connection_asks_for_what_follows_the_last_whole_event(clock: ManualClock) -> None:
    following = cursor(clock)
    whole, torn = log_event(1, "one\n", 4), log_event(1, "two\n", 8)
    following.call()
    assert list(following.feed(whole + torn[:-5])) == [LogChunk(1, "one\n", "1:4")]
    following.interrupted(BROKEN)
    assert following.call().headers["last-event-id"] == "1:4"
    assert list(following.feed(torn)) == [LogChunk(1, "two\n", "1:8")], "nothing of the torn one"


def test_the_end_event_ends_it(clock: ManualClock) -> None:
    following = cursor(clock)
    following.call()
    assert list(following.feed(b"event: end\ndata: {}\n\n")) == []
    assert following.ended


def test_job_events_are_jobs(clock: ManualClock) -> None:
    following = cursor(clock)
    following.call()
    job = {
        "id": "abc", "operation": "train", "lane": "long", "state": "RUNNING",
        "created_by": "local", "workspace": "default", "created_at": "2026-01-01T00:00:00Z",
        "a_field_of_a_newer_server": 1,
    }  # fmt: skip
    [said] = following.feed(f"event: job\ndata: {json.dumps(job)}\n\n".encode())
    assert isinstance(said, Job)
    assert said.operation == "train"


def test_silence_longer_than_the_patience_is_given_up_with_the_position(clock: ManualClock) -> None:
    following = cursor(clock, patience_s=10.0)
    following.call()
    list(following.feed(log_event(2, "x", 1)))
    clock.advance(9.0)
    assert following.interrupted(BROKEN) < 1.0
    clock.advance(1.5)
    with pytest.raises(ServerUnreachable, match="read up to 2:1"):
        following.interrupted(BROKEN)


def test_every_byte_heard_renews_the_patience(clock: ManualClock) -> None:
    following = cursor(clock, patience_s=10.0)
    for _ in range(20):
        following.call()
        list(following.feed(b": ping\n\n"))
        clock.advance(9.0)
        following.interrupted(BROKEN)


def test_a_job_that_is_not_there_is_not_asked_for_again(clock: ManualClock) -> None:
    with pytest.raises(NotFound):
        cursor(clock).interrupted(Reply(404, {}, b'{"title":"Not found","status":404}'))

"""When a call is sent again: driven as values, no socket and no sleep (trap 24)."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from headway.client.errors import NotFound, ServerBusy, ServerUnreachable
from headway.client.retrying import Retrier, RetryPolicy
from headway.client.steps import Call, Lost, Pause, Reply
from headway.core.clock import ManualClock

OK = Reply(200, {}, b"{}")
BUSY = Reply(
    503, {"retry-after": "2"}, b'{"title":"Busy","status":503,"detail":"the lane is full"}'
)
REFUSED = Lost("ConnectError")
READ = Call("GET", "/v1/jobs/a")
UNKEYED_POST = Call("POST", "/v1/operations/a", repeatable=False)


class Exchange:
    """Carries a flow out against an answer for each try, and keeps what it did."""

    def __init__(self, answers: Callable[[int], Reply | Lost], patience_s: float = 30.0) -> None:
        self.clock = ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
        policy = RetryPolicy(patience_s=patience_s)
        self.retrier = Retrier(policy, self.clock, random.Random(7))
        self.answers = answers
        self.sent = 0
        self.pauses: list[float] = []

    def send(self, call: Call) -> Reply:
        flow = self.retrier.send(call)
        answer: Reply | Lost | None = None
        while True:
            try:
                step = flow.send(answer)
            except StopIteration as stop:
                answered: Reply = stop.value
                return answered
            if isinstance(step, Pause):
                self.pauses.append(step.seconds)
                self.clock.advance(step.seconds)
                answer = None
            else:
                self.sent += 1
                answer = self.answers(self.sent)


def test_a_lost_read_is_asked_again_until_it_is_answered() -> None:
    exchange = Exchange(lambda n: OK if n == 4 else REFUSED)
    assert exchange.send(READ) is OK
    assert exchange.sent == 4
    assert exchange.pauses == sorted(exchange.pauses), "pauses grow"


def test_retry_after_of_a_busy_server_is_obeyed() -> None:
    exchange = Exchange(lambda n: OK if n == 3 else BUSY)
    exchange.send(READ)
    assert all(pause >= 2.0 for pause in exchange.pauses)


def test_trap_24_endless_503_ends_with_the_policys_patience() -> None:
    exchange = Exchange(lambda n: BUSY, patience_s=9.0)
    with pytest.raises(ServerBusy, match="the lane is full"):
        exchange.send(READ)
    assert sum(exchange.pauses) <= 9.0
    assert 3 <= exchange.sent <= 5


def test_a_server_that_is_not_there_is_given_up_with_the_reason() -> None:
    exchange = Exchange(lambda n: REFUSED, patience_s=3.0)
    with pytest.raises(ServerUnreachable, match="ConnectError"):
        exchange.send(READ)


def test_a_post_without_a_key_is_not_repeated_after_a_lost_connection() -> None:
    """Trap 15: nobody knows whether it was acted on, so a second one could launch twice."""
    exchange = Exchange(lambda n: REFUSED)
    with pytest.raises(ServerUnreachable):
        exchange.send(UNKEYED_POST)
    assert exchange.sent == 1


def test_a_post_without_a_key_is_repeated_after_503_which_did_nothing() -> None:
    exchange = Exchange(lambda n: OK if n == 2 else BUSY)
    assert exchange.send(UNKEYED_POST) is OK


def test_a_refusal_is_raised_at_once_as_its_class() -> None:
    body = b'{"title":"Not found","status":404,"detail":"there is no job \'x\'"}'
    exchange = Exchange(lambda n: Reply(404, {}, body))
    with pytest.raises(NotFound, match="there is no job 'x'") as caught:
        exchange.send(READ)
    assert exchange.sent == 1
    assert caught.value.problem.status == 404


def test_zero_patience_means_one_try() -> None:
    exchange = Exchange(lambda n: REFUSED, patience_s=0.0)
    with pytest.raises(ServerUnreachable):
        exchange.send(READ)
    assert exchange.sent == 1
    assert exchange.pauses == []

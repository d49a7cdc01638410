from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headway.core.failure import ErrorInfo
from headway.core.retry import RetryPolicy
from headway.core.states import JobState, Outcome
from headway.dispatch.decision import Decider
from headway.execution.attempt import (
    Cancelled,
    Died,
    Ending,
    NotStarted,
    OutOfMemory,
    Raised,
    RetryAsked,
    Succeeded,
    TimedOut,
)
from headway.store.attempts import AttemptEnd, Claim, ClaimedJob, Finish, Release, RetryLater
from headway.store.jobs import JobRow, Payload, StoredResult

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ERROR = ErrorInfo(type="ValueError", message="no")
DIED = Died(9, None, "killed by SIGKILL")


def decide(
    ending: Ending, draining: bool = False, attempt: int = 1, released: int = 0,
    crashes: int = 0, **policy: Any,
) -> AttemptEnd:  # fmt: skip
    job = JobRow(
        id="j", sequence=1, operation="op", lane="long", workspace="w", created_by="me",
        state=JobState.RUNNING, priority=0, attempt=attempt, released=released, crashes=crashes,
        created_at=NOW,
    )  # fmt: skip
    claimed = ClaimedJob(
        claim=Claim(job_id="j", attempt=attempt, owner="o"),
        job=job,
        payload=Payload(input_json="{}", retry=RetryPolicy(jitter=0, **policy)),
        lease_until_ns=0,
        ready_at=NOW,
    )
    return Decider(random.Random(1), Path("/state")).decide(claimed, ending, draining)


@pytest.mark.parametrize(
    ("ending", "result"),
    [
        (Succeeded(b"42"), StoredResult(json="42")),
        (
            Succeeded(None, Path("/state/results/j/1.json"), 9),
            StoredResult(file="results/j/1.json"),
        ),
        (Succeeded(None), None),
    ],
)
def test_success_keeps_what_there_is(ending: Succeeded, result: StoredResult | None) -> None:
    assert decide(ending) == Finish(outcome=Outcome.SUCCEEDED, result=result)


def test_what_is_not_the_jobs_fault_is_given_back() -> None:
    assert isinstance(decide(NotStarted("no memory to fork")), Release)
    assert isinstance(decide(Cancelled(), draining=True), Release)
    assert decide(Cancelled()) == Finish(outcome=Outcome.CANCELLED)


def test_a_job_that_finished_while_draining_has_finished() -> None:
    assert isinstance(decide(Succeeded(b"1"), draining=True), Finish)


def test_an_asked_retry_takes_its_own_delay_or_the_policys() -> None:
    end = decide(RetryAsked(30.0, "no GPU"), max_attempts=2)
    assert isinstance(end, RetryLater)
    assert (end.delay_s, end.reason) == (30.0, "no GPU")
    end = decide(RetryAsked(None, "no GPU"), attempt=3, max_attempts=9, backoff_s=1.0)
    assert isinstance(end, RetryLater)
    assert end.delay_s == 4.0


def test_drained_attempts_do_not_use_up_the_budget() -> None:
    assert isinstance(decide(RetryAsked(0, "x"), attempt=5, released=4, max_attempts=2), RetryLater)
    assert isinstance(decide(RetryAsked(0, "x"), attempt=5, released=3, max_attempts=2), Finish)


def test_errors_are_retried_when_the_operation_names_them() -> None:
    assert decide(Raised(ERROR, retry=False), max_attempts=9) == Finish(
        outcome=Outcome.FAILED, error=ERROR
    )
    end = decide(Raised(ERROR, retry=True), max_attempts=2)
    assert isinstance(end, RetryLater)
    assert end.error == ERROR
    assert not end.crashed
    assert isinstance(decide(Raised(ERROR, retry=True), attempt=2, max_attempts=2), Finish)


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [(DIED, Outcome.WORKER_LOST), (OutOfMemory("cgroup"), Outcome.OUT_OF_MEMORY)],
)
def test_a_crash_is_named_and_retried_only_when_retryable(ending: Ending, outcome: Outcome) -> None:
    end = decide(ending)
    assert isinstance(end, Finish)
    assert (end.outcome, end.crashed) == (outcome, True)
    again = decide(ending, retryable=True, max_attempts=3)
    assert isinstance(again, RetryLater)
    assert (again.outcome, again.delay_s, again.crashed) == (outcome, 0.0, True)


def test_repeated_crashes_end_in_quarantine() -> None:
    """Trap 25a."""
    end = decide(DIED, attempt=3, crashes=2, retryable=True, max_attempts=9)
    assert isinstance(end, Finish)
    assert end.outcome is Outcome.QUARANTINED


def test_a_time_limit_is_final() -> None:
    end = decide(TimedOut(5.0), retryable=True, max_attempts=9)
    assert isinstance(end, Finish)
    assert end.outcome is Outcome.TIMED_OUT

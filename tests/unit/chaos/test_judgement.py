"""Each kind of flaw is shown to be found: a verifier that finds nothing proves nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headway.chaos.history import Accepted, Followed, History, Pause, StoredJob
from headway.chaos.journal import Fact, Line, digest, numbered_line
from headway.chaos.judgement import Flaw, judge
from headway.chaos.report import report_json, report_text
from headway.chaos.workload import Assignment
from headway.core.clock import ns_from_s
from headway.core.failure import ErrorInfo
from headway.core.states import JobState, Outcome, WaitReason, state_of
from headway.store.jobs import AttemptRow, Event, JobRow

NOW = datetime(2026, 12, 1, tzinfo=UTC)
STEADY = Assignment(number=0, operation="chaos.steady", input={}, result=3, lines=3)
WHOLE = "".join(numbered_line(number) + "\n" for number in range(3)).encode()


def stored(
    job_id: str = "a", outcome: Outcome | None = Outcome.SUCCEEDED, attempt: int = 1,
    kinds: tuple[str, ...] | None = None, reason: str = "", result: Any = 3,
    artifacts: Mapping[tuple[int, str], str] | None = None,
) -> StoredJob:  # fmt: skip
    """A job as the store would have it, with a right history unless `kinds` says otherwise."""
    if kinds is None:
        again = ("claimed", "rescued", "retry") * (attempt - 1)
        kinds = ("submitted", *again, "claimed", *(("ended",) if outcome else ()))
    row = JobRow(
        id=job_id, sequence=1, operation="chaos.steady", lane="long", workspace="default",
        created_by="local", priority=0, attempt=attempt, released=0, crashes=0, created_at=NOW,
        state=JobState.RUNNING if outcome is None else state_of(outcome), outcome=outcome,
        labels={"chaos": "0"},
    )  # fmt: skip
    claimed = 0
    events = []
    for number, kind in enumerate(kinds, 1):
        claimed += kind == "claimed"
        data = json.dumps({"reason": reason} if kind == "rescued" else {})
        events.append(Event(number=number, at=NOW, kind=kind, attempt=claimed, data_json=data))
    won = AttemptRow(attempt=attempt, owner="w", started_at=NOW, ended_at=NOW, outcome=outcome)
    return StoredJob(
        row=row, events=tuple(events), attempts=(won,) if outcome else (), result=result,
        artifacts=artifacts or {},
    )  # fmt: skip


def line(attempt: int, fact: Fact, at_s: float = 0.0, job: str = "a") -> Line:
    return Line(fact=fact, job=job, attempt=attempt, pid=100 + attempt, at_ns=ns_from_s(at_s))


def history(job: StoredJob | None = None, **fields: Any) -> History:
    """One steady job that was accepted, ran once, and was followed; all is well with it."""
    job = job or stored()
    started = (line(job.row.attempt, Fact.START), line(job.row.attempt, Fact.END))
    whole = {job.row.attempt: WHOLE}
    fields = {
        "accepted": (Accepted(assignment=STEADY, job_ids=("a",)),),
        "jobs": {job.row.id: job},
        "journals": {0: started},
        "logs": {"a": whole},
        "followed": {"a": Followed(texts=whole)},
    } | fields
    return History(**fields)


def flaws(case: History) -> list[Flaw]:
    return [finding.flaw for finding in judge(case).findings]


def test_a_history_without_a_flaw_has_no_finding() -> None:
    verdict = judge(history())
    assert verdict.findings == ()
    assert (verdict.submitted, verdict.ended, verdict.lines) == (1, {"succeeded": 1}, 3)


def test_a_job_that_was_accepted_and_is_not_stored_is_lost() -> None:
    assert flaws(history(jobs={})) == [Flaw.LOST]


def test_a_job_that_has_not_ended_is_stuck() -> None:
    waiting = stored(outcome=None, attempt=0, kinds=("submitted",))
    row = msgspec.structs.replace(
        waiting.row, state=JobState.PENDING, wait_reason=WaitReason.QUEUED
    )
    case = history(replace(waiting, row=row), logs={}, journals={}, followed={})
    assert flaws(case) == [Flaw.STUCK]
    assert "PENDING (queued)" in judge(case).findings[0].text


@pytest.mark.parametrize(
    "kinds",
    [
        ("submitted", "claimed", "ended", "ended"),
        ("submitted", "claimed", "ended", "killed"),
        ("submitted", "submitted", "claimed", "ended"),
        ("submitted", "claimed", "claimed", "ended"),
        ("submitted", "claimed", "released", "ended"),
        ("submitted", "claimed"),
    ],
    ids=" ".join,
)
def test_a_history_of_events_that_cannot_be_is_a_double(kinds: tuple[str, ...]) -> None:
    assert set(flaws(history(stored(kinds=kinds)))) == {Flaw.DOUBLED}


def test_two_attempts_that_succeeded_are_a_double() -> None:
    job = stored(attempt=2)
    first = msgspec.structs.replace(job.attempts[0], attempt=1)
    assert flaws(history(replace(job, attempts=(first, *job.attempts)))) == [Flaw.DOUBLED]


def test_two_jobs_for_one_key_are_a_double() -> None:
    other = stored("b")
    posted = (Accepted(assignment=STEADY, job_ids=("a", "b")),)
    assert flaws(history(accepted=posted, jobs={"a": stored(), "b": other})) == [Flaw.DOUBLED]


def test_a_job_that_nobody_was_told_of_is_a_double() -> None:
    assert flaws(history(jobs={"a": stored(), "b": stored("b")})) == [Flaw.DOUBLED]


def test_an_outcome_that_the_job_cannot_have_is_wrong_and_says_why() -> None:
    job = stored(outcome=Outcome.FAILED)
    row = msgspec.structs.replace(job.row, error=ErrorInfo(type="Odd", message="it was odd"))
    case = history(replace(job, row=row))
    assert flaws(case) == [Flaw.WRONG]
    assert "Odd: it was odd" in judge(case).findings[0].text


def test_a_result_of_somebody_else_is_wrong() -> None:
    assert flaws(history(stored(result=4))) == [Flaw.WRONG]


def test_a_success_whose_work_was_not_done_is_wrong() -> None:
    assert flaws(history(journals={0: (line(1, Fact.START),)})) == [Flaw.WRONG]


@pytest.mark.parametrize(
    "kept", [{}, {(1, "text.txt"): digest("y")}, {(2, "text.txt"): digest("x")}]
)
def test_an_artifact_that_is_missing_or_another_one_is_wrong(kept: Any) -> None:
    keeps = replace(STEADY, artifact=digest("x"))
    posted = (Accepted(assignment=keeps, job_ids=("a",)),)
    right = stored(artifacts={(1, "text.txt"): digest("x")})
    assert flaws(history(right, accepted=posted)) == []
    assert flaws(history(stored(artifacts=kept), accepted=posted)) == [Flaw.WRONG]


# --- at the same time ---------------------------------------------------------------------------

OVERLAPPING = (
    line(1, Fact.START, 1.0), line(2, Fact.START, 9.0), line(1, Fact.BEAT, 9.5),
    line(2, Fact.END, 10.0),
)  # fmt: skip
STOPPED = Pause(pid=1, role="worker", from_ns=ns_from_s(5), until_ns=ns_from_s(9.2))


def overlap(reason: str, *pauses: Pause) -> History:
    return history(stored(attempt=2, reason=reason), journals={0: OVERLAPPING}, pauses=pauses)


def test_an_attempt_at_work_beside_its_successor_is_an_overlap() -> None:
    assert flaws(overlap("the process that ran it died", STOPPED)) == [Flaw.OVERLAP]


def test_it_is_excused_only_by_a_lease_that_ran_out_while_somebody_was_stopped() -> None:
    case = overlap("its lease was not renewed in time", STOPPED)
    assert (flaws(case), judge(case).excused) == ([], 1)
    long_ago = replace(STOPPED, from_ns=0, until_ns=ns_from_s(1))
    assert flaws(overlap("its lease was not renewed in time", long_ago)) == [Flaw.OVERLAP]
    assert flaws(overlap("its lease was not renewed in time")) == [Flaw.OVERLAP]


def test_two_jobs_at_work_with_one_key_are_an_overlap() -> None:
    turns = (line(1, Fact.START), line(1, Fact.END), line(1, Fact.START, job="b"))
    assert flaws(history(shared=(*turns, line(1, Fact.END, job="b")))) == []
    assert flaws(history(shared=(*turns, line(1, Fact.BEAT)))) == [Flaw.OVERLAP]


# --- logs ---------------------------------------------------------------------------------------


def cut(*numbers: int, torn: str = "") -> bytes:
    return ("".join(numbered_line(number) + "\n" for number in numbers) + torn).encode()


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (cut(0, 1), Flaw.LINES_MISSING),
        (cut(0, 2), Flaw.LINES_MISSING),
        (cut(0, 1, 1, 2), Flaw.LINES_REPEATED),
        (cut(0, 1, 2, torn="rubbish"), Flaw.LINES_MISSING),
        (cut(0, torn='{"line": 1'), Flaw.LINES_MISSING),
        (b"", Flaw.LINES_MISSING),
    ],
)
def test_a_log_of_a_success_has_every_line_once(content: bytes, flaw: Flaw) -> None:
    there = {1: content}
    assert flaws(history(logs={"a": there}, followed={"a": Followed(texts=there)})) == [flaw]


@pytest.mark.parametrize(
    ("content", "fine"),
    [
        (cut(0, torn='{"line": 1'), True),
        (cut(0, torn=numbered_line(1)).removesuffix(b'\xa9": ""}'), True),
        (b"", True),
        (cut(1), False),
        (cut(0, torn='{"line": 2'), False),
    ],
)
def test_a_log_of_a_killed_attempt_has_the_first_lines(content: bytes, fine: bool) -> None:
    there = {1: content, 2: WHOLE}
    shown = {1: content.decode("utf-8", "replace").encode(), 2: WHOLE}
    case = history(stored(attempt=2), logs={"a": there}, followed={"a": Followed(texts=shown)})
    assert flaws(case) == ([] if fine else [Flaw.LINES_MISSING])


@pytest.mark.parametrize(
    ("given", "flaw"),
    [
        ({1: WHOLE[:-5]}, Flaw.LINES_MISSING),
        ({1: WHOLE + WHOLE[-5:]}, Flaw.LINES_REPEATED),
        ({}, Flaw.LINES_MISSING),
        ({1: WHOLE, 2: b"more"}, Flaw.LINES_REPEATED),
    ],
)
def test_a_follower_has_exactly_what_the_log_has(given: Any, flaw: Flaw) -> None:
    assert flaws(history(followed={"a": Followed(texts=given)})) == [flaw]


def test_a_follower_that_gave_up_or_leapt_is_told_of() -> None:
    gave_up = Followed(texts={1: WHOLE}, gave_up="ServerUnreachable")
    leapt = Followed(texts={1: WHOLE}, leaps=["was given 3 bytes between 1:0 and 1:5"])
    for followed in (gave_up, leapt):
        assert flaws(history(followed={"a": followed})) == [Flaw.LINES_MISSING]


# --- the rest -----------------------------------------------------------------------------------


def test_what_is_left_behind_and_what_complained_is_told_of() -> None:
    case = history(orphans=("process 1",), leftovers=("tmp/x",), complaints=("exit code 3",))
    assert flaws(case) == [Flaw.ORPHAN, Flaw.LEFTOVER, Flaw.COMPLAINT]


def test_a_job_that_was_never_accepted_is_a_complaint_and_not_a_loss() -> None:
    case = history(accepted=(Accepted(assignment=STEADY, job_ids=()),), jobs={}, followed={})
    assert flaws(case) == [Flaw.COMPLAINT]


def test_both_reports_have_every_count_and_finding() -> None:
    verdict = judge(history(jobs={}, orphans=("process 1",)))
    said = json.loads(report_json(verdict, seed=5, minutes=1.0))
    assert (said["seed"], said["flaws"]["lost"], said["flaws"]["orphan"]) == (5, 1, 1)
    assert [each["job_id"] for each in said["findings"]] == ["a", None]
    text = report_text(verdict, seed=5, minutes=1.0)
    assert "lost: job a: " in text
    assert "2 findings (seed 5, 1 min)" in text
    assert all(flaw.value.replace("_", " ") in text for flaw in Flaw)

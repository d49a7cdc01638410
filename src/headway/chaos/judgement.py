"""What is wrong in a history. Pure, so that each flaw can be shown to be found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headway.chaos.history import Accepted, Followed, History, StoredJob
from headway.chaos.journal import Fact, Line, numbered_line
from headway.chaos.operations import ARTIFACT
from headway.chaos.workload import LABEL, LEASE_S, Assignment
from headway.core.clock import ns_from_s
from headway.core.states import Outcome
from headway.store.events import EventKind


class Flaw(StrEnum):
    """Kinds of things that must not happen."""

    LOST = "lost"
    """Accepted, and not in the store."""
    STUCK = "stuck"
    """Not ended when everything had time to."""
    DOUBLED = "doubled"
    """Two jobs for one idempotency key, two ends of one job, or a job nobody submitted."""
    WRONG = "wrong"
    """An outcome, a result or an artifact that the job cannot have."""
    OVERLAP = "overlap"
    """Two attempts, or two jobs that exclude one another, at work at the same time."""
    LINES_MISSING = "lines_missing"
    """Lines of a log, in the file or at the follower."""
    LINES_REPEATED = "lines_repeated"
    ORPHAN = "orphan"
    """A process that outlived its server."""
    LEFTOVER = "leftover"
    """A file that nobody will remove."""
    COMPLAINT = "complaint"
    """An answer or an exit that a healthy server does not give."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    flaw: Flaw
    text: str
    job_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The whole verdict.

    Attributes:
        submitted: Assignments that were posted.
        ended: Jobs by outcome.
        attempts: Attempts of all jobs together.
        lines: Numbered lines that followers were given.
        excused: Overlaps behind a process that was stopped past its lease: the one case in which
            at-least-once execution cannot be told from twice at once.
    """

    submitted: int
    ended: dict[str, int]
    attempts: int
    lines: int
    resumed: int
    excused: int
    findings: tuple[Finding, ...]

    def count(self, flaw: Flaw) -> int:
        """How many findings are of a kind."""
        return sum(finding.flaw is flaw for finding in self.findings)


def judge(history: History) -> Judgement:
    """Look at everything."""
    overlaps = [*_overlaps(history), *_shared_overlaps(history)]
    findings = [
        *_lost(history),
        *_strangers(history),
        *_each(history, _stuck, _ends, _outcome, _lines_in_file),
        *(finding for finding, excused in overlaps if not excused),
        *_followers(history),
        *(Finding(flaw=Flaw.ORPHAN, text=text) for text in history.orphans),
        *(Finding(flaw=Flaw.LEFTOVER, text=text) for text in history.leftovers),
        *(Finding(flaw=Flaw.COMPLAINT, text=text) for text in history.complaints),
    ]
    rows = [job.row for job in history.jobs.values()]
    return Judgement(
        submitted=len(history.accepted),
        ended=dict(sorted(Counter(row.outcome for row in rows if row.outcome).items())),
        attempts=sum(row.attempt for row in rows),
        lines=sum(text.count(b"\n") for each in history.followed.values()
                  for text in each.texts.values()),
        resumed=sum(each.resumed for each in history.followed.values()),
        excused=sum(excused for _, excused in overlaps),
        findings=tuple(findings),
    )  # fmt: skip


# --- submissions --------------------------------------------------------------------------------


def _lost(history: History) -> Iterator[Finding]:
    for accepted in history.accepted:
        ids = set(accepted.job_ids)
        number = accepted.assignment.number
        for job_id in ids - history.jobs.keys():
            text = f"assignment {number} was accepted and is not in the store"
            yield Finding(flaw=Flaw.LOST, job_id=job_id, text=text)
        if len(ids) > 1:
            text = f"one idempotency key made the jobs {', '.join(sorted(ids))}"
            yield Finding(flaw=Flaw.DOUBLED, job_id=min(ids), text=text)
        if not ids:
            text = f"assignment {number} was never accepted"
            yield Finding(flaw=Flaw.COMPLAINT, text=text)


def _strangers(history: History) -> Iterator[Finding]:
    """Jobs in the store beyond one for each assignment."""
    known = {id_ for accepted in history.accepted for id_ in accepted.job_ids}
    for job_id, job in history.jobs.items():
        if job_id not in known:
            text = f"nobody was told of this job (assignment {job.row.labels.get(LABEL)})"
            yield Finding(flaw=Flaw.DOUBLED, job_id=job_id, text=text)


# --- each job -----------------------------------------------------------------------------------

_Check = Callable[[History, Assignment, StoredJob], Iterable[tuple[Flaw, str]]]


def _each(history: History, *checks: _Check) -> Iterator[Finding]:
    for assignment, job in _pairs(history):
        for check in checks:
            for flaw, text in check(history, assignment, job):
                yield Finding(flaw=flaw, job_id=job.row.id, text=f"{assignment.operation}: {text}")


def _pairs(history: History) -> Iterator[tuple[Assignment, StoredJob]]:
    for accepted in history.accepted:
        job = _job_of(history, accepted)
        if job is not None:
            yield accepted.assignment, job


def _job_of(history: History, accepted: Accepted) -> StoredJob | None:
    found = (history.jobs.get(job_id) for job_id in accepted.job_ids)
    return next((job for job in found if job is not None), None)


def _stuck(history: History, assignment: Assignment, job: StoredJob) -> Iterator[tuple[Flaw, str]]:
    row = job.row
    if not row.state.is_terminal:
        why = f" ({row.wait_reason})" if row.wait_reason else ""
        yield Flaw.STUCK, f"it is {row.state}{why} at attempt {row.attempt}"


def _ends(history: History, assignment: Assignment, job: StoredJob) -> Iterator[tuple[Flaw, str]]:
    """Exactly one recorded end, whatever happened to the attempts."""
    row = job.row
    kinds = Counter(event.kind for event in job.events)
    if kinds[EventKind.SUBMITTED] != 1 or kinds[EventKind.ENDED] > 1:
        yield Flaw.DOUBLED, f"its history has {dict(kinds)}"
    if row.state.is_terminal and (not job.events or job.events[-1].kind != EventKind.ENDED):
        yield Flaw.DOUBLED, "something was written after its end"
    if row.state.is_terminal and row.owner is not None:
        yield Flaw.DOUBLED, f"it has ended and {row.owner} still owns it"
    if kinds[EventKind.CLAIMED] != row.attempt or kinds[EventKind.RELEASED] != row.released:
        yield Flaw.DOUBLED, f"attempt {row.attempt}, {row.released} released, and {dict(kinds)}"
    won = [each.attempt for each in job.attempts if each.outcome is Outcome.SUCCEEDED]
    if len(won) > 1:
        yield Flaw.DOUBLED, f"the attempts {won} succeeded"


def _outcome(
    history: History, assignment: Assignment, job: StoredJob
) -> Iterator[tuple[Flaw, str]]:
    row = job.row
    if row.outcome is None:
        return
    if row.outcome not in assignment.outcomes:
        because = "" if row.error is None else f" ({row.error.type}: {row.error.message})"
        yield Flaw.WRONG, f"it is {row.outcome}{because}"
        return
    if row.outcome is not Outcome.SUCCEEDED:
        return
    if job.result != assignment.result:
        yield Flaw.WRONG, f"it returned {_short(job.result)}"
    if assignment.artifact is not None:
        kept = job.artifacts.get((row.attempt, ARTIFACT))
        if kept != assignment.artifact:
            yield Flaw.WRONG, f"its last attempt left {_short(kept)} as its artifact"


def _lines_in_file(
    history: History, assignment: Assignment, job: StoredJob
) -> Iterator[tuple[Flaw, str]]:
    """An attempt that worked to its end has every line; one that was killed has the first ones."""
    if assignment.lines == 0:
        return
    logs = history.logs.get(job.row.id, {})
    finished = {
        line.attempt
        for line in history.journals.get(assignment.number, ())
        if line.fact is Fact.END
    }
    for attempt, content in sorted(logs.items()):
        whole = attempt == job.row.attempt and job.row.outcome is Outcome.SUCCEEDED
        for flaw, text in _numbering(content.decode("utf-8", "replace"), assignment, whole):
            yield flaw, f"the log of attempt {attempt} {text}"
    if job.row.outcome is Outcome.SUCCEEDED and job.row.attempt not in logs:
        yield Flaw.LINES_MISSING, f"attempt {job.row.attempt} has no log"
    if job.row.outcome is Outcome.SUCCEEDED and job.row.attempt not in finished:
        yield Flaw.WRONG, f"attempt {job.row.attempt} succeeded and never came to its end"


def _numbering(text: str, assignment: Assignment, whole: bool) -> Iterator[tuple[Flaw, str]]:
    width = assignment.input.get("width", 0)
    lines = text.split("\n")
    torn = lines.pop()
    for number, line in enumerate(lines):
        if line != numbered_line(number, width):
            flaw = _flaw_of(line, number)
            yield flaw, f"has {_short(line)} where line {number} should be"
            return
    if whole and (torn or len(lines) != assignment.lines):
        yield Flaw.LINES_MISSING, f"has {len(lines)} lines of {assignment.lines}"
    elif not numbered_line(len(lines), width).startswith(torn.rstrip("\ufffd")):
        yield Flaw.LINES_MISSING, f"ends in {_short(torn)}"


def _flaw_of(line: str, expected: int) -> Flaw:
    try:
        found = json.loads(line)["line"]
    except (ValueError, KeyError, TypeError):
        return Flaw.LINES_MISSING
    return Flaw.LINES_REPEATED if found < expected else Flaw.LINES_MISSING


# --- at the same time ---------------------------------------------------------------------------


def _overlaps(history: History) -> Iterator[tuple[Finding, bool]]:
    """An attempt that is at work after a later one has begun; with it, whether that is excused."""
    for assignment, job in _pairs(history):
        newest: Line | None = None
        seen: set[int] = set()
        for line in history.journals.get(assignment.number, ()):
            if newest is None or line.attempt > newest.attempt:
                newest = line
            elif line.attempt < newest.attempt and line.attempt not in seen:
                seen.add(line.attempt)
                text = (
                    f"{assignment.operation}: attempt {line.attempt} (process {line.pid}) was at"
                    f" work when attempt {newest.attempt} had begun"
                )
                finding = Finding(flaw=Flaw.OVERLAP, job_id=job.row.id, text=text)
                yield finding, _is_excused(history, job, line.attempt, newest.at_ns)


def _shared_overlaps(history: History) -> Iterator[tuple[Finding, bool]]:
    """Two jobs with one concurrency key at work at the same time."""
    holder: Line | None = None
    for line in history.shared:
        if line.fact is Fact.START:
            holder = line
        elif holder is not None and (line.job, line.attempt) != (holder.job, holder.attempt):
            job = history.jobs.get(line.job)
            text = (
                f"attempt {line.attempt} (process {line.pid}) was at work when job {holder.job}"
                " with the same concurrency key had begun"
            )
            finding = Finding(flaw=Flaw.OVERLAP, job_id=line.job, text=text)
            excused = job is not None and _is_excused(history, job, line.attempt, holder.at_ns)
            yield finding, excused
            holder = line if line.fact is not Fact.END else None


def _is_excused(history: History, job: StoredJob, attempt: int, next_began_ns: int) -> bool:
    """Whether the attempt lost its lease because a process was stopped, and for no other reason."""
    rescue = next(
        (each for each in job.events
         if each.kind == EventKind.RESCUED and each.attempt == attempt),
        None,
    )  # fmt: skip
    if rescue is None or "lease" not in json.loads(rescue.data_json).get("reason", ""):
        return False
    return any(
        pause.from_ns < next_began_ns and pause.until_ns > next_began_ns - ns_from_s(LEASE_S)
        for pause in history.pauses
    )


# --- followers ----------------------------------------------------------------------------------


def _followers(history: History) -> Iterator[Finding]:
    for job_id, followed in history.followed.items():
        for flaw, text in _followed(followed, history.logs.get(job_id, {})):
            yield Finding(flaw=flaw, job_id=job_id, text=f"its follower {text}")


def _followed(followed: Followed, logs: Mapping[int, bytes]) -> Iterator[tuple[Flaw, str]]:
    if followed.gave_up is not None:
        yield Flaw.LINES_MISSING, f"gave up: {followed.gave_up}"
        return
    for leap in followed.leaps:
        yield Flaw.LINES_MISSING, leap
    for attempt in sorted({*followed.texts, *logs}):
        # A log that was torn in the middle of a character is shown with one that stands for it.
        there = logs.get(attempt, b"").decode("utf-8", "replace").encode()
        given = followed.texts.get(attempt, b"")
        if given != there:
            flaw = Flaw.LINES_REPEATED if len(given) > len(there) else Flaw.LINES_MISSING
            yield (
                flaw,
                (
                    f"was given {len(given)} bytes of attempt {attempt}, and its log has"
                    f" {len(there)}; they part at {_common(given, there)}"
                ),
            )


def _common(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next(
        (at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other))
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}... ({len(text)} characters)"

"""Between the rows of SQLite and the store's values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from headway.core.failure import ErrorInfo
from headway.core.states import JobState, Outcome, WaitReason
from headway.store.jobs import AttemptRow, Event, JobRow, Payload, Progress, StoredResult, Usage
from headway.store.submissions import NewJob

Row = tuple[Any, ...]

JOB_COLUMNS = (
    "sequence, id, operation, lane, workspace, created_by, state, wait_reason, wait_detail,"
    " run_at_us, priority, concurrency_key, attempt, released, crashes, timeout_s, labels_json,"
    " retry_of, created_at_us, cancel_requested_at_us, owner, started_at_us, ended_at_us,"
    " progress_json, outcome, error_json, lock_name"
)
JOB_WIDTH = JOB_COLUMNS.count(",") + 1

_SHORT_TERMS = 2000
"""Characters; those of a few environment variables more are kept by nobody."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STATES = {state.value: state for state in JobState}
_REASONS = {reason.value: reason for reason in WaitReason}
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}

_encode = msgspec.json.Encoder().encode
_labels = msgspec.json.Decoder(dict[str, str])
_progress = msgspec.json.Decoder(Progress)
_error = msgspec.json.Decoder(ErrorInfo)
_usage = msgspec.json.Decoder(Usage)
_payload = msgspec.json.Decoder(Payload)


def us_from_time(time: datetime) -> int:
    """Microseconds since the epoch, exactly."""
    return (time - _EPOCH) // _MICROSECOND


def time_from_us(microseconds: int) -> datetime:
    """The UTC time of so many microseconds since the epoch, exactly."""
    return _EPOCH + timedelta(microseconds=microseconds)


def to_json(value: object) -> str:
    """A value as JSON text."""
    return _encode(value).decode()


def terms_json(job: NewJob) -> str:
    """All of a submission's payload but the input, which is stored as it came."""
    return to_json(
        Payload(
            input_json="",
            env=job.env,
            config_json=job.config_json,
            preconditions=job.preconditions,
            secrets=job.secrets,
            secret_names=job.secret_names,
            target=job.target,
            keep_result=job.keep_result,
            memory_limit_bytes=job.memory_limit_bytes,
            grace_s=job.grace_s,
            retry=job.retry,
        )
    )


def payload_from(input_json: str, terms: str) -> Payload:
    known = len(terms) <= _SHORT_TERMS
    payload = _decode_short_terms(terms) if known else _payload.decode(terms)
    return msgspec.structs.replace(payload, input_json=input_json)


@lru_cache(maxsize=64)
def _decode_short_terms(terms: str) -> Payload:
    """Jobs of an operation have the same terms, as a rule."""
    return _payload.decode(terms)


def terms_from(terms: str) -> Payload:
    """A payload whose input was not read."""
    return _payload.decode(terms)


def job_from(row: Row) -> JobRow:
    """A job from the columns of `JOB_COLUMNS`; further columns are left alone."""
    return JobRow(
        sequence=row[0],
        id=row[1],
        operation=row[2],
        lane=row[3],
        workspace=row[4],
        created_by=row[5],
        state=_STATES[row[6]],
        wait_reason=None if row[7] is None else _REASONS[row[7]],
        wait_detail=row[8],
        run_at=_time(row[9]),
        priority=row[10],
        concurrency_key=row[11],
        attempt=row[12],
        released=row[13],
        crashes=row[14],
        timeout_s=row[15],
        labels={} if row[16] == "{}" else _labels.decode(row[16]),
        retry_of=row[17],
        created_at=time_from_us(row[18]),
        cancel_requested_at=_time(row[19]),
        owner=row[20],
        started_at=_time(row[21]),
        ended_at=_time(row[22]),
        progress=None if row[23] is None else _progress.decode(row[23]),
        outcome=None if row[24] is None else _OUTCOMES[row[24]],
        error=None if row[25] is None else _error.decode(row[25]),
        lock_name=row[26],
    )


def event_from(row: Row) -> Event:
    number, at_us, kind, attempt, data_json = row
    return Event(
        number=number, at=time_from_us(at_us), kind=kind, attempt=attempt, data_json=data_json
    )


def attempt_from(row: Row) -> AttemptRow:
    attempt, owner, started_at_us, ended_at_us, outcome, error_json, usage_json = row
    return AttemptRow(
        attempt=attempt,
        owner=owner,
        started_at=time_from_us(started_at_us),
        ended_at=time_from_us(ended_at_us),
        outcome=None if outcome is None else _OUTCOMES[outcome],
        error=None if error_json is None else _error.decode(error_json),
        usage=None if usage_json is None else _usage.decode(usage_json),
    )


def result_from(row: Row) -> StoredResult:
    return StoredResult(json=row[0], file=row[1])


def progress_from(progress_json: str) -> Progress:
    return _progress.decode(progress_json)


def optional_json(value: object | None) -> str | None:
    return None if value is None else to_json(value)


def labels_json(labels: Mapping[str, str]) -> str:
    return to_json(labels) if labels else "{}"


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else time_from_us(microseconds)

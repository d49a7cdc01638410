"""What is submitted, already validated, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from headway.core.retry import RetryPolicy
from headway.store.jobs import JobRow, Payload, Precondition


class Idempotency(msgspec.Struct, frozen=True, kw_only=True):
    """A client's promise that equal keys mean the same submission.

    Attributes:
        key: The client's key, unique within a workspace.
        fingerprint: A hash of the request as it was sent, so that a key used twice for different
            requests is noticed.
    """

    key: str
    fingerprint: str


class NewJob(msgspec.Struct, frozen=True, kw_only=True):
    """A submission, already validated.

    Attributes:
        lane: Where the operation runs: `long`, `short` or `inline`.
        priority: Higher runs first; equal priorities run in order of submission.
        not_before: The job is `scheduled` until then.
        timeout_s: Limit for each attempt's running time.
        concurrency_key: Jobs with one key run at most its limit at a time (by default 1).
        keep_result: False drops the result (`ignore_result`).
        env: Environment overrides, already checked against the allow-list.
        config_json: Configuration overlay, already validated.
        secrets: Environment variables whose values are secrets: the secret's name by variable.
        secret_names: Secrets that the operation asks for by name.
        target: Name of the registered target that the job may measure; None: not restricted.
        retry_of: The ended job that this one does again; an ended job itself never changes.
    """

    operation: str
    lane: str
    input_json: str
    priority: int = 0
    not_before: datetime | None = None
    timeout_s: float | None = None
    concurrency_key: str | None = None
    preconditions: tuple[Precondition, ...] = ()
    labels: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    config_json: str = "{}"
    secrets: Mapping[str, str] = {}
    secret_names: tuple[str, ...] = ()
    target: str | None = None
    keep_result: bool = True
    memory_limit_bytes: int | None = None
    grace_s: float | None = None
    retry: RetryPolicy = RetryPolicy()
    created_by: str = "local"
    workspace: str = "default"
    retry_of: str | None = None
    idempotency: Idempotency | None = None


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a submission.

    Attributes:
        created: False when an earlier submission with the same idempotency key made it.
    """

    job: JobRow
    created: bool


class IdempotencyConflict(msgspec.Struct, frozen=True, kw_only=True):
    """The key was used before for another request; nothing was stored."""

    key: str
    job_id: str


def submission_again(job: JobRow, payload: Payload, created_by: str) -> NewJob:
    """A submission that does an ended job's work once more, now."""
    return NewJob(
        operation=job.operation,
        lane=job.lane,
        input_json=payload.input_json,
        priority=job.priority,
        timeout_s=job.timeout_s,
        concurrency_key=job.concurrency_key,
        labels=job.labels,
        env=payload.env,
        config_json=payload.config_json,
        secrets=payload.secrets,
        secret_names=payload.secret_names,
        target=payload.target,
        keep_result=payload.keep_result,
        memory_limit_bytes=payload.memory_limit_bytes,
        grace_s=payload.grace_s,
        retry=payload.retry,
        created_by=created_by,
        workspace=job.workspace,
        retry_of=job.id,
    )

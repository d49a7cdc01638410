"""What goes over the wire between a Headway client and a Headway server.

Both ends use these definitions, so that the SDK and the OpenAPI document cannot drift apart. The
answers tolerate fields they do not know (a newer server may say more); the requests do not
tolerate any (a misspelt option must be an error, not silence).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from headway.core.states import JobState, Outcome, WaitReason

MAX_LABELS = 32
MAX_ENV_VARIABLES = 64
MAX_BATCH_JOBS = 1_000
MAX_WAIT_S = 300.0
MAX_TIMEOUT_S = 30 * 24 * 3600.0

# A text that a store and a C library can hold: NUL ends a C string and SQLite's text functions.
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
LongText = Annotated[str, StringConstraints(max_length=4_096, pattern=r"^[^\x00]*$")]
EnvName = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", min_length=1, max_length=200)
]

SecretName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")
]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PreconditionSpec(_Request):
    """One condition that must hold before the job may be claimed."""

    name: ShortText
    arguments: Annotated[dict[ShortText, JsonValue], Field(max_length=32)] = {}
    timeout_s: Annotated[float | None, Field(gt=0, le=MAX_TIMEOUT_S)] = None


class SubmitOptions(_Request):
    """Everything about a submission that is not the operation's own input.

    Attributes:
        priority: Larger runs first.
        not_before: Not claimed before this moment; with a time zone.
        timeout_s: Ends an attempt as `timed_out`; shorter than the operation's own, not longer.
        concurrency_key: At most one job with this key runs at a time.
        env: Environment overrides of the attempt, within the server's allow-list.
        config: Overlay over the operation's configuration.
        secrets: Environment variables that get the values of the workspace's secrets: the secret's
            name by variable, or a list of variables that are called like their secrets.
        ignore_result: The result is not kept.
    """

    priority: Annotated[int, Field(ge=-1_000, le=1_000)] = 0
    not_before: datetime | None = None
    timeout_s: Annotated[float | None, Field(gt=0, le=MAX_TIMEOUT_S)] = None
    max_attempts: Annotated[int | None, Field(ge=1, le=100)] = None
    concurrency_key: ShortText | None = None
    preconditions: Annotated[list[PreconditionSpec], Field(max_length=16)] = []
    labels: Annotated[dict[ShortText, LongText], Field(max_length=MAX_LABELS)] = {}
    env: Annotated[dict[EnvName, LongText], Field(max_length=MAX_ENV_VARIABLES)] = {}
    config: Annotated[dict[ShortText, JsonValue], Field(max_length=256)] = {}
    secrets: (
        Annotated[dict[EnvName, SecretName], Field(max_length=MAX_ENV_VARIABLES)]
        | Annotated[list[EnvName], Field(max_length=MAX_ENV_VARIABLES)]
    ) = {}
    ignore_result: bool = False

    @property
    def secrets_by_variable(self) -> dict[str, str]:
        """The secret's name by environment variable."""
        if isinstance(self.secrets, dict):
            return self.secrets
        return {name: name for name in self.secrets}


class JobRequest(SubmitOptions):
    """One job of a batch."""

    operation: ShortText
    input: JsonValue = None
    idempotency_key: ShortText | None = None


class BatchRequest(_Request):
    """Several jobs, accepted or refused together, in one commit."""

    jobs: Annotated[list[JobRequest], Field(min_length=1, max_length=MAX_BATCH_JOBS)]


class Progress(_Answer):
    """What the current attempt last said of itself."""

    fraction: float | None = None
    message: str | None = None
    numbers: dict[str, float] = {}


class ProgressPoint(_Answer):
    """Numbers that a job told at a moment, in seconds since the epoch."""

    at_s: float
    numbers: dict[str, float]


class ProgressHistory(_Answer):
    """What an attempt told of its progress over time, oldest first, thinned out."""

    attempt: int
    points: list[ProgressPoint]


class JobError(_Answer):
    """Why an attempt failed, as data."""

    type: str
    message: str
    traceback: str | None = None
    cause: JobError | None = None


class Job(_Answer):
    """A job as the server sees it now.

    Attributes:
        attempt: Number of the current or last attempt; 0 before the first.
        released: Attempts that a shutting-down server gave back; they do not count.
        crashes: Attempts that took their process down.
        run_at: When a `scheduled` or `backoff` job may run.
        error: How it failed; while it is retried, the last attempt's error.
    """

    id: str
    operation: str
    lane: str
    state: JobState
    outcome: Outcome | None = None
    wait_reason: WaitReason | None = None
    wait_detail: str | None = None
    run_at: datetime | None = None
    priority: int = 0
    attempt: int = 0
    released: int = 0
    crashes: int = 0
    timeout_s: float | None = None
    concurrency_key: str | None = None
    labels: dict[str, str] = {}
    created_by: str
    workspace: str
    cancel_requested_at: datetime | None = None
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    progress: Progress | None = None
    error: JobError | None = None
    retry_of: str | None = None

    @property
    def is_ended(self) -> bool:
        """True when nothing can change this job any more."""
        return self.state.is_terminal


class JobPage(_Answer):
    """One page of a list of jobs, newest first; `next_cursor` asks for the following one."""

    jobs: list[Job]
    next_cursor: str | None = None


class JobFieldsPage(_Answer):
    """One page of a list for which only some fields were asked for."""

    jobs: list[dict[str, JsonValue]]
    next_cursor: str | None = None


class BatchAnswer(_Answer):
    """The jobs of a batch, in the order in which they were sent."""

    jobs: list[Job]


class JobResult(_Answer):
    """An ended job with what it returned (`result` is null unless it succeeded)."""

    job: Job
    result: JsonValue = None


class Event(_Answer):
    """Something that happened to a job; `attempt` is 0 when it belongs to none."""

    number: int
    at: datetime
    kind: str
    attempt: int = 0
    detail: dict[str, JsonValue] = {}


class EventPage(_Answer):
    """A job's events, oldest first; pass the last one's number as `after` for what follows."""

    events: list[Event]


class Why(_Answer):
    """Why a job does not run now, in one sentence (`text`) and as data.

    Attributes:
        rule: The rule that holds it: `turn`, `workspace_limit`, `user_limit`, `lock`, `scheduled`,
            `backoff` or `precondition`; null when it does not wait.
        position: 1 is the next: of the lock's line (`lock`), else of its workspace in the lane.
        lane_position: For `turn`: 1 is the next that its lane takes.
        lock: What it must hold to run: the lock of its concurrency key, or else the key.
        holders: The jobs of its workspace that hold the lock.
        until: When the wait ends by itself.
        estimated_start: When it will run, judged by the jobs before it; null: cannot be told.
    """

    job_id: str
    state: JobState
    reason: WaitReason | None = None
    text: str
    rule: str | None = None
    position: int | None = None
    lane_position: int | None = None
    lock: str | None = None
    holders: list[str] = []
    until: datetime | None = None
    estimated_start: datetime | None = None


class Artifact(_Answer):
    """A file that a job left behind."""

    name: str
    size_bytes: int
    media_type: str
    attempt: int


class ArtifactList(_Answer):
    """The artifacts of a job, by name."""

    artifacts: list[Artifact]


class OperationInfo(_Answer):
    """An operation that the server runs, with the JSON schemas of its input and result."""

    name: str
    description: str
    lane: Literal["long", "short", "inline"]
    retryable: bool
    max_attempts: int
    timeout_s: float | None = None
    input_schema: dict[str, Any] | None = None
    result_schema: dict[str, Any] | None = None


class LoginLink(_Answer):
    """Where a browser is signed in."""

    path: str


class OperationList(_Answer):
    """Every operation of the server, by name."""

    operations: list[OperationInfo]


class FieldProblem(_Answer):
    """One field of a request that cannot be used."""

    path: str
    message: str


class Problem(_Answer):
    """An RFC 9457 problem document: the body of every error answer."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str | None = None
    errors: list[FieldProblem] = []
    request_id: str | None = None

"""What is kept of a request, of a stage, and of the machine that measured them.

Records are JSON lines: each is whole or absent, so a file cut by kill -9 is read up to its last
newline. Times are integer nanoseconds since the start of the record's stage (its elapsed 0),
because a resumed run may cross a reboot and monotonic clocks do not. What is not known is absent
(`None`), never 0.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal["completed", "errored", "cancelled"]
"""The three terminal states of a request. A lost request is `errored`, category `worker_lost`."""

ErrorCategory = Literal[
    "connect",  # no connection: refused, unreachable, name not resolved
    "tls",  # the handshake failed or the certificate was refused
    "http_status",  # an answer with an error status
    "protocol",  # not the protocol that was expected (HTML, malformed event, bad chunk)
    "disconnected",  # the connection ended before the reply did
    "timeout",  # one of the four deadlines; the message says which
    "backend",  # a backend raised; the body holds the traceback
    "server",  # an error reported inside a stream that began with status 200
    "worker_lost",  # the worker that owned the request died
]


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request did not complete, as data."""

    category: ErrorCategory
    message: str
    """One sentence for people; equal for equal causes, so that reports can group by it."""
    status: int | None = None
    """HTTP status, where one came."""
    body: str | None = None
    """The start of the reply's body, or a traceback; at most MAX_BODY_CHARS."""
    retry_after_s: float | None = None


MAX_BODY_CHARS = 2_000


class RequestRecord(msgspec.Struct, omit_defaults=True):
    """One request, from due to done. DESIGN section 4 defines what is derived from it.

    Workers construct it by position, which takes a seventh of the time that 28 keywords take, and a
    third of setting attributes one by one.
    """

    stage: int
    index: int
    """The arrival's index in its stage. With `turn` it is unique there."""
    status: Status
    due_ns: int
    turn: int = 0
    worker: int = 0
    sent_ns: int | None = None
    """When the request's first byte was handed to the socket; None: it was never sent."""
    pool_wait_ns: int | None = None
    """Waited for a free connection; part of neither service latency nor TTFT."""
    connect_ns: int | None = None
    """Name lookup and TCP connect, when this request opened a connection."""
    tls_ns: int | None = None
    first_byte_ns: int | None = None
    first_token_ns: int | None = None
    """First non-empty generated token on any channel: content, reasoning, tool call."""
    first_content_ns: int | None = None
    """First non-empty content token."""
    last_token_ns: int | None = None
    done_ns: int | None = None
    chunks: int | None = None
    """Events of the stream that carried tokens."""
    gaps_ns: list[int] | None = None
    """Gaps between successive reads that carried tokens: one timestamp a socket read."""
    input_tokens: int | None = None
    cached_tokens: int | None = None
    """Input tokens that the server says it had cached."""
    output_tokens: int | None = None
    output_tokens_source: Literal["usage", "tokenizer", "chunks"] | None = None
    asked_output_tokens: int | None = None
    finish_reason: str | None = None
    response_bytes: int | None = None
    connection_reused: bool | None = None
    resent: bool = False
    """Sent again, once, because a reused connection was closed before a byte came back."""
    partial_text: str | None = None
    """The start of what had arrived when the request was cancelled or failed."""
    failure: Failure | None = None


class WorkerSample(msgspec.Struct, omit_defaults=True, kw_only=True, tag="worker_sample"):
    """What a load worker says of itself, about once a second: evidence for the verdict."""

    stage: int
    worker: int
    at_ns: int
    """Nanoseconds since the stage's start."""
    cpu_s: float
    """CPU seconds that the process used since the last sample."""
    wall_s: float
    """Seconds since the last sample."""
    loop_lag_max_ns: int
    """The event loop's worst delay of a timer since the last sample."""
    in_flight: int
    rss_bytes: int


class StageStarted(msgspec.Struct, omit_defaults=True, kw_only=True, tag="stage_started"):
    """A stage began; its elapsed 0 on both clocks."""

    stage: int
    name: str
    profile: dict[str, Any]
    """The stage's load profile, with single values."""
    started_wall: str
    """UTC, ISO 8601."""
    started_monotonic_ns: int
    workers: int
    planned_warmup_s: float = 0.0
    planned_cooldown_s: float = 0.0
    step: int | None = None
    """Which of the load profile's stages this is, where a resumed run has numbered it otherwise."""

    @property
    def profile_step(self) -> int:
        """Which of the load profile's stages this is."""
        return self.stage if self.step is None else self.step


class StageCounts(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the scheduler counted of a stage; a resumed run plans its next stages by it."""

    completed: int = 0
    errored: int = 0
    cancelled: int = 0
    achieved_per_s: float = 0.0
    """Requests completed a second, until sending ended."""
    workers_lost: int = 0
    is_error_rule: bool = False
    """Whether a rule ended it that ends the whole run where `stop_scope` says so."""


class StageEnded(msgspec.Struct, omit_defaults=True, kw_only=True, tag="stage_ended"):
    """A stage ended, and which rule ended it."""

    stage: int
    at_ns: int
    """When its last request had its terminal event."""
    sending_ended_ns: int
    """When no new request was sent any more."""
    reason: str
    """`max_requests`, `max_seconds`, `max_errors`, `max_error_rate`, `max_consecutive_errors`,
    `min_goodput`, `saturated`, `requests_exhausted`, `schedule_ended`, `interrupted`,
    `worker_lost`, `failed`."""
    offered: int
    """Arrivals whose due time came before sending ended."""
    detail: str | None = None
    counts: StageCounts = StageCounts()


class WorkerDied(msgspec.Struct, omit_defaults=True, kw_only=True, tag="worker_died"):
    """A load worker's process ended before it was told to."""

    worker: int
    stage: int | None = None
    cause: str = "unknown"
    """For example `signal 9`, `exit code 1`, `silent for 10 s`."""
    lost_requests: int = 0


class Note(msgspec.Struct, omit_defaults=True, kw_only=True, tag="note"):
    """Anything else that a reader of the run must know, for example how prompts were counted."""

    topic: str
    text: str
    data: dict[str, Any] | None = None


RunEvent = StageStarted | StageEnded | WorkerSample | WorkerDied | Note
"""A line of the run's `events.jsonl`, told apart by its `type` field."""

"""What the parent and its workers say to each other, as msgpack frames over their socket pair.

Prompts never travel: a worker makes the content of request i from (seed, i) itself (trap 40).
Arrays of integers travel as the bytes of `array('q')`, which cost a tenth of msgpack's own lists.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from headway.core.encodable import encodable
from headway.records.record import WorkerSample

RequestState = Literal[
    "queued", "pending", "in_progress", "first_token", "completed", "errored", "cancelled"
]
"""The life of a request; the last three are terminal."""


class RequestUpdate(msgspec.Struct, frozen=True, array_like=True):
    """One change in the life of a request, for those who watch."""

    stage: int
    index: int
    turn: int
    state: RequestState
    at_ns: int
    """Nanoseconds since the stage's start."""


# --- from the parent ---------------------------------------------------------------------------


class Setup(msgspec.Struct, frozen=True, tag="setup"):
    """The first message: who the worker is and what the run is."""

    worker: int
    spec_json: bytes
    recipe: bytes
    observe: bool = False
    """Whether somebody watches single requests; if nobody does, no update is made."""
    log: str | None = None
    """The file that takes the worker's standard error from now on."""


class PrepareStage(msgspec.Struct, frozen=True, tag="prepare_stage"):
    """Open the stage's inputs and answer `StageReady`: the barrier before its start."""

    stage: int


class BeginStage(msgspec.Struct, frozen=True, tag="begin_stage", kw_only=True):
    """A stage begins at `start_ns`, which is always set and in the future (trap 30)."""

    stage: int
    start_ns: int
    """Absolute monotonic nanoseconds."""
    slots: int | None
    """This worker's share of requests in flight; None: no cap."""
    closed_loop: bool
    open_conversations: int | None = None
    """This worker's share."""
    end_ns: int | None = None
    """Absolute; nothing is sent from then on, even before the parent's `Drain` arrives."""
    flush_on_error: bool = False
    """An error rule listens: report errors at once."""


class Arrivals(msgspec.Struct, frozen=True, tag="arrivals"):
    """Open loop: arrivals `first`, `first + step`, … with their absolute due times."""

    stage: int
    first: int
    step: int
    due_ns: bytes


class Grants(msgspec.Struct, frozen=True, tag="grants"):
    """Closed loop: the worker may begin arrivals `first` … `first + count - 1`."""

    stage: int
    first: int
    count: int


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Nothing more will be handed out: answer `StageDone` when all has ended.

    With `cut_ns` sending ends there: what fell due before and was not sent is recorded as
    cancelled, what falls due later is dropped, and what is in flight at `cancel_ns` is cancelled.
    May come a second time, with an earlier cut.
    """

    stage: int
    cut_ns: int | None = None
    cancel_ns: int | None = None


class Exit(msgspec.Struct, frozen=True, tag="exit"):
    """Shut the backend down and end."""


ToWorker = Setup | PrepareStage | BeginStage | Arrivals | Grants | Drain | Exit


# --- from a worker -----------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The backend is up and the target can be measured."""

    target_json: bytes


class StartFailed(msgspec.Struct, frozen=True, tag="start_failed"):
    """The worker cannot work; the run ends with this."""

    kind: Literal["config", "target", "internal"]
    message: str
    traceback: str


class StageReady(msgspec.Struct, frozen=True, tag="stage_ready"):
    """The stage's inputs are open."""

    stage: int


class Counters(msgspec.Struct, tag="counters", kw_only=True):
    """What happened since the last report: enough for stop rules and the live view."""

    sent: int = 0
    completed: int = 0
    errored: int = 0
    cancelled: int = 0
    last_sent_ns: int = 0
    """When the latest request was sent, or fell due and failed unsent; absolute, 0: none was."""
    leading_errors: int = 0
    """Errors before the first success among these, in the order they ended."""
    longest_errors: int = 0
    """Longest run of errors among these."""
    trailing_errors: int = 0
    good: int = 0
    """Completed requests that met every objective; counted where a run has objectives."""
    ttft: dict[int, int] = {}
    """Sparse histogram: bucket to count (see `histogram`)."""
    latency: dict[int, int] = {}
    lateness: dict[int, int] = {}
    error_messages: dict[str, int] = {}


class Report(msgspec.Struct, tag="report", kw_only=True):
    """A batch: records as encoded lines, what the parent needs to know without decoding them."""

    stage: int
    records: bytes
    ended: bytes
    """Arrivals of which every turn now has its record, as array('q')."""
    open_turns: list[tuple[int, int]]
    """(arrival, turn) that ended while later turns of the conversation have not."""
    dropped: bytes
    """Arrivals handed out that were never offered: past the cut, or the inputs had ended."""
    in_flight: int
    counters: Counters
    exhausted_at: int | None = None
    """The inputs had nothing for this arrival, nor for any later one."""
    updates: list[RequestUpdate] = []


class Want(msgspec.Struct, frozen=True, tag="want"):
    """Closed loop: this worker is about to run out of grants."""

    stage: int


class StageDone(msgspec.Struct, frozen=True, tag="stage_done"):
    """Everything handed to this worker has ended and was reported."""

    stage: int


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Once a second, also between stages: evidence, and the sign of life."""

    sample: WorkerSample | None = None


class Broken(msgspec.Struct, frozen=True, tag="broken"):
    """The worker's own code failed outside of any request: a bug, shown with its traceback."""

    traceback: str


FromWorker = Ready | StartFailed | StageReady | Report | Want | StageDone | Sample | Broken

_encoder = msgspec.msgpack.Encoder()


def encode(message: ToWorker | FromWorker) -> bytes:
    """One message as a frame's payload."""
    try:
        return _encoder.encode(message)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message, builtin_types=(bytes,))
        return _encoder.encode(encodable(plain))


def decoder_for_worker() -> msgspec.msgpack.Decoder[ToWorker]:
    """Decodes what a worker receives."""
    return msgspec.msgpack.Decoder(ToWorker)


def decoder_for_parent() -> msgspec.msgpack.Decoder[FromWorker]:
    """Decodes what the parent receives."""
    return msgspec.msgpack.Decoder(FromWorker)

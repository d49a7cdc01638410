"""What the supervisor, the forkserver and job processes say to each other.

MessagePack by msgspec: typed, fast, and nothing in it can run code (trap 13). Between supervisor
and forkserver one message is one datagram (SOCK_SEQPACKET); to and from a job process messages are
length-prefixed frames, because a result may have many megabytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.core.failure import ErrorInfo
from headway.core.states import Lane
from headway.jobs.artifacts import Artifact
from headway.jobs.secrets import SecretValues
from headway.jobs.target import TargetGrant

RESULT_CHUNK_BYTES = 512 * 1024
"""Well under MAX_FRAME_BYTES, so that neither side ever holds a big result twice."""


# --- supervisor to forkserver -------------------------------------------------------------------


class Fork(msgspec.Struct, frozen=True, tag=True):
    """Fork a job process; the message carries its end of the control socket.

    Attributes:
        groups: `cgroup.procs` files that the new process enters before anything else.
        adopt: Whether it becomes the reaper of its own descendants.
    """

    token: int
    groups: tuple[str, ...]
    adopt: bool


class Sweep(msgspec.Struct, frozen=True, tag=True):
    """Kill every process that has fallen to the forkserver because its parent died."""

    token: int


ToForkserver = Fork | Sweep


# --- forkserver to supervisor -------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The operations are loaded.

    Attributes:
        threads: Threads of the forkserver; more than one makes forking unsafe.
    """

    threads: int


class Broken(msgspec.Struct, frozen=True, tag=True):
    """The operations cannot be loaded; the forkserver ends."""

    text: str


class Forked(msgspec.Struct, frozen=True, tag=True):
    """A job process is there; the message carries its pidfd."""

    token: int
    pid: int


class ForkFailed(msgspec.Struct, frozen=True, tag=True):
    """The host refused a process."""

    token: int
    text: str


class Exited(msgspec.Struct, frozen=True, tag=True):
    """A job process ended and was reaped.

    Attributes:
        status: As `os.waitpid` gives it.
        peak_rss_bytes: Of the process itself.
        cpu_s: Of the process and the descendants it waited for.
    """

    pid: int
    status: int
    peak_rss_bytes: int
    cpu_s: float


class Swept(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Sweep`."""

    token: int
    killed: tuple[int, ...]
    survivors: tuple[int, ...]


FromForkserver = Ready | Broken | Forked | ForkFailed | Exited | Swept


# --- supervisor to job process ------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Run an attempt; the frame's first byte carries the log pipe's writing end.

    Attributes:
        reuse: The process is to be ready for another attempt afterwards.
    """

    job_id: str
    attempt: int
    operation: str
    lane: Lane
    request: bytes
    env: dict[str, str]
    config: dict[str, Any]
    labels: dict[str, str]
    secrets: SecretValues
    target: TargetGrant | None
    keep_result: bool
    result_limit_bytes: int
    artifact_limit_bytes: int
    temp_dir: str
    work_dir: str
    artifact_dir: str
    debug_log: str
    reuse: bool


# --- job process to supervisor ------------------------------------------------------------------


class Entered(msgspec.Struct, frozen=True, tag=True):
    """The function is being called."""

    at_ns: int


class ProgressMade(msgspec.Struct, frozen=True, tag=True):
    """The job said how far it is."""

    fraction: float | None
    message: str | None
    numbers: dict[str, float]


class ArtifactMade(msgspec.Struct, frozen=True, tag=True):
    """An artifact is complete."""

    artifact: Artifact


class ResultChunk(msgspec.Struct, frozen=True, tag=True):
    """The next part of the result's JSON text; all of them come before `Ended`."""

    data: bytes


class GaveResult(msgspec.Struct, frozen=True, tag=True):
    """The function returned; its result went ahead as chunks, unless it is not kept."""

    size_bytes: int | None


class GaveRetry(msgspec.Struct, frozen=True, tag=True):
    """The function raised Retry."""

    after_s: float | None
    reason: str


class GaveError(msgspec.Struct, frozen=True, tag=True):
    """The function failed."""

    error: ErrorInfo
    retry: bool
    out_of_memory: bool


class GaveUp(msgspec.Struct, frozen=True, tag=True):
    """The function was stopped by SIGTERM, whatever it did with JobCancelled."""


Verdict = GaveResult | GaveRetry | GaveError | GaveUp


class Ended(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The attempt is over in this process, and its output is written.

    Attributes:
        returned_ns: When the function was left.
        descendants: Processes of the attempt are still there.
        retire: Why the process must not be used again, or nothing.
        peak_rss_bytes: The larger of this process's own peak and of its largest waited child.
        rss_bytes: Resident memory now.
        rss_growth_bytes: Since the attempt before ended, or since the first began.
    """

    verdict: Verdict
    returned_ns: int
    descendants: bool
    retire: str | None
    peak_rss_bytes: int
    rss_bytes: int
    rss_growth_bytes: int
    cpu_s: float


FromJob = Entered | ProgressMade | ArtifactMade | ResultChunk | Ended

encode = msgspec.msgpack.Encoder().encode

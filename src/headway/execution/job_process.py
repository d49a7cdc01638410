"""What runs in a job process: attempts, one after another, until the supervisor hangs up."""

from __future__ import annotations

import contextlib
import contextvars
import gc
import os
import resource
import signal
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from headway.core.clock import monotonic_ns
from headway.core.errors import ConfigError
from headway.core.failure import ErrorInfo
from headway.execution.cancel_gate import CancelGate
from headway.execution.channel import JobChannel
from headway.execution.debug_log import close_logger, debug_logger
from headway.execution.linux import read_process
from headway.execution.messages import (
    RESULT_CHUNK_BYTES,
    ArtifactMade,
    Ended,
    Entered,
    GaveError,
    GaveResult,
    GaveRetry,
    GaveUp,
    ProgressMade,
    ResultChunk,
    Start,
    Verdict,
)
from headway.execution.process_state import ProcessState
from headway.execution.surroundings import Surroundings
from headway.jobs import invocation
from headway.jobs.artifacts import Artifact, ArtifactDir
from headway.jobs.context import AttemptPlace, JobContext, enter_job
from headway.jobs.describe import describe, type_name
from headway.jobs.job_dir import JobDir
from headway.jobs.masking import Masker
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry

EXIT_INTERNAL_ERROR = 70
"""The exit code when Headway's own code in a job process failed (EX_SOFTWARE of sysexits.h)."""


@dataclass(frozen=True, slots=True)
class _Sink:
    channel: JobChannel
    gate: CancelGate

    def progress(
        self, fraction: float | None, message: str | None, numbers: dict[str, float]
    ) -> None:
        self.channel.send(ProgressMade(fraction, message, numbers))

    def artifact(self, artifact: Artifact) -> None:
        self.channel.send(ArtifactMade(artifact))

    def cancel_requested(self) -> bool:
        return self.gate.requested


class JobProcess:
    """The main loop of a job process.

    Args:
        channel: To the supervisor.
        gate: Handles SIGTERM.
        registry: The operations.
        surroundings: Of the process; made after the fork.
    """

    def __init__(
        self,
        channel: JobChannel,
        gate: CancelGate,
        registry: Registry,
        surroundings: Surroundings,
    ) -> None:
        self._channel = channel
        self._gate = gate
        self._registry = registry
        self._surroundings = surroundings
        self._state: ProcessState | None = None
        self._rss_bytes: int | None = None

    def serve(self) -> NoReturn:
        """Run attempts until there are no more; then end without Python's shutdown.

        That shutdown would wait for threads that a job left behind, and run clean-up code that was
        registered before the fork and belongs to the forkserver.
        """
        code = 0
        try:
            while (received := self._channel.receive()) is not None:
                self._gate.idle = False
                if not self._attempt(*received):
                    break
                self._gate.idle = True
        except BaseException:  # noqa: BLE001 - told in the log and by the exit code
            traceback.print_exc()
            code = EXIT_INTERNAL_ERROR
        self._surroundings.flush()
        os._exit(code)

    def _attempt(self, start: Start, log: int) -> bool:
        """Run one attempt; returns whether the process may run another."""
        if start.reuse and self._state is None:
            # The received log is already open: it is closed when the state is compared.
            self._state = ProcessState(spare_descriptors=1)
        meter = _Meter(self._rss_bytes)
        set_title(f"{start.lane.value} job {start.job_id} {start.operation}")
        environment = self._surroundings.enter(start, log)
        verdict, rest, returned_ns = self._judge(start, environment)
        self._surroundings.flush()
        self._surroundings.leave()
        descendants = has_descendants()
        facts = read_process(os.getpid())
        self._rss_bytes = facts.rss_bytes if facts else 0
        threads = facts.threads if facts else 1
        retire = self._make_as_new(start, descendants, threads) if start.reuse else None
        ended = meter.ended(verdict, returned_ns, descendants, retire, self._rss_bytes)
        self._channel.send(*rest, ended)
        if start.reuse and retire is None:
            set_title("idle short-lane process")
            # What the attempt left in cycles goes now, while nobody waits. The heap from before the
            # fork is frozen, so this takes a fraction of a millisecond (trap 16).
            gc.collect()
        return start.reuse and retire is None

    def _judge(
        self, start: Start, environment: dict[str, str]
    ) -> tuple[Verdict, tuple[ResultChunk, ...], int]:
        """Run the function; what it said, without the values of its secrets.

        Returns:
            The verdict, what of the result goes with the end, and when the function returned.
        """
        masker = start.secrets.masker()
        answer, returned_ns = self._run(start, environment, masker)
        if answer is None:
            return GaveUp(), (), returned_ns
        verdict, rest = self._told(invocation.masked(answer, masker))
        return verdict, rest, returned_ns

    def _run(
        self, start: Start, environment: dict[str, str], masker: Masker | None
    ) -> tuple[invocation.Answer | None, int]:
        """The answer; None when the function was told to stop."""
        operation = self._registry.get(start.operation)
        if operation is None:
            error = ConfigError(f"this worker has no operation {start.operation}")
            return invocation.Failed(describe(error)), monotonic_ns()
        try:
            request = invocation.parse_request(operation, start.request)
            job = self._context(operation, start, environment, masker)
        except Exception as error:  # noqa: BLE001 - validators run the author's code
            # Its traceback would show Headway's code only.
            info = ErrorInfo(type_name(type(error)), str(error))
            return invocation.Failed(info), monotonic_ns()
        value, raised = self._call(operation, job, request)
        returned_ns = monotonic_ns()
        close_logger(job.log)
        if self._gate.requested:
            return None, returned_ns
        if raised is not None:
            return invocation.answer_for_error(operation, raised), returned_ns
        answer = invocation.answer_for_result(
            operation, value, start.keep_result, start.result_limit_bytes
        )
        return answer, returned_ns

    def _call(
        self, operation: Operation, job: JobContext, request: Any
    ) -> tuple[Any, BaseException | None]:
        """Call the function in a context of its own, so that no context variable outlives it."""
        values = invocation.arguments(operation, job, request)
        context = contextvars.copy_context()
        context.run(enter_job, job)
        self._channel.send(Entered(monotonic_ns()))
        if operation.is_async:
            return context.run(self._gate.call_async, lambda: operation.function(*values))
        return self._gate.call(lambda: context.run(operation.function, *values))

    def _context(
        self,
        operation: Operation,
        start: Start,
        environment: dict[str, str],
        masker: Masker | None,
    ) -> JobContext:
        return JobContext(
            id=start.job_id,
            attempt=start.attempt,
            operation=start.operation,
            labels=start.labels,
            config=operation.validate_config(start.config),
            place=AttemptPlace(
                temp_dir=Path(start.temp_dir),
                job_dir=JobDir(Path(start.work_dir), start.attempt),
                artifacts=ArtifactDir(Path(start.artifact_dir), start.artifact_limit_bytes),
                env=environment,
                log=debug_logger(start.job_id, Path(start.debug_log), masker),
                secrets=start.secrets,
                masker=masker,
                target=start.target,
            ),
            sink=_Sink(self._channel, self._gate),
        )

    def _told(self, answer: invocation.Answer) -> tuple[Verdict, tuple[ResultChunk, ...]]:
        """The verdict of an answer; a result goes ahead of it, all but its last part."""
        if not isinstance(answer, invocation.Returned) or answer.result is None:
            return _verdict(answer), ()
        view = memoryview(answer.result)
        last = max(0, len(view) - 1) // RESULT_CHUNK_BYTES * RESULT_CHUNK_BYTES
        for begin in range(0, last, RESULT_CHUNK_BYTES):
            self._channel.send(ResultChunk(bytes(view[begin : begin + RESULT_CHUNK_BYTES])))
        return GaveResult(len(view)), (ResultChunk(bytes(view[last:])),)

    def _make_as_new(self, start: Start, descendants: bool, threads: int) -> str | None:
        assert self._state is not None
        if start.secrets:
            return "it held secrets: what the operation remembers must not reach another job"
        if descendants:
            return "processes of the attempt were left running"
        if self._gate.requested:
            return "the attempt was told to stop"
        self._state.restore()
        return self._state.reason_to_retire(threads)


def _verdict(answer: invocation.Answer) -> Verdict:
    match answer:
        case invocation.Returned():
            return GaveResult(None)
        case invocation.AskedRetry(after_s, reason):
            return GaveRetry(after_s, reason)
        case invocation.Failed(error, retry, out_of_memory):
            return GaveError(error, retry, out_of_memory)


class _Meter:
    """CPU time and memory of one attempt, as the process itself can see them.

    Args:
        rss_bytes: When the attempt before ended; None: this one is the first.
    """

    def __init__(self, rss_bytes: int | None) -> None:
        if rss_bytes is None:
            facts = read_process(os.getpid())
            rss_bytes = facts.rss_bytes if facts else 0
        else:
            _reset_peak_memory()
        self._rss_bytes = rss_bytes
        own, children = _used()
        self._cpu_s = _cpu_s(own) + _cpu_s(children)

    def ended(
        self,
        verdict: Verdict,
        returned_ns: int,
        descendants: bool,
        retire: str | None,
        rss_bytes: int,
    ) -> Ended:
        own, children = _used()
        return Ended(
            verdict=verdict,
            returned_ns=returned_ns,
            descendants=descendants,
            retire=retire,
            peak_rss_bytes=1024 * max(own.ru_maxrss, children.ru_maxrss),
            rss_bytes=rss_bytes,
            rss_growth_bytes=rss_bytes - self._rss_bytes,
            cpu_s=_cpu_s(own) + _cpu_s(children) - self._cpu_s,
        )


def _used() -> tuple[resource.struct_rusage, resource.struct_rusage]:
    """By this process, and by the children that it waited for."""
    return resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)


def _cpu_s(used: resource.struct_rusage) -> float:
    return used.ru_utime + used.ru_stime


def _reset_peak_memory() -> None:
    """Let the kernel count this process's peak from now (proc(5), clear_refs)."""
    with contextlib.suppress(OSError):
        # Without a file object, which would take longer than the rest.
        handle = os.open("/proc/self/clear_refs", os.O_WRONLY)
        try:
            os.write(handle, b"5")
        finally:
            os.close(handle)


def has_descendants() -> bool:
    """Reap what has ended; say whether a process of the attempt is still there.

    A job process is the reaper of its descendants, so also a double-forked daemon in a session of
    its own is a child of it by now.
    """
    _stop_resource_tracker()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _stop_resource_tracker() -> None:
    """Let multiprocessing's helper process end and clean up; it would be counted as left over."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    stop = getattr(getattr(module, "_resource_tracker", None), "_stop", None)
    if stop is not None:
        stop()


def set_title(text: str) -> None:
    """Show `headway: text` in ps (J16)."""
    # Imported here, because a module that is only imported must not touch the process's memory.
    import setproctitle

    setproctitle.setproctitle(f"headway: {text}")


def use_default_signals() -> None:
    """Undo the forkserver's signal handling in a new job process."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    # Ctrl-C in the server's terminal is the server's business; it cancels jobs by the rules.
    signal.signal(signal.SIGINT, signal.SIG_IGN)

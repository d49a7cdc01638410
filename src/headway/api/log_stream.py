"""A job's life as server-sent events: its log, its changes, its end.

Each `log` event carries the position after it as its id, so a reader that comes back with
Last-Event-ID gets exactly what follows, from any server that has the state directory (J20). The
other events carry no id and are said anew after a reconnect.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

import msgspec

from headway.api.limits import Limits
from headway.api.live import LiveJob, LiveJobs, wait_for_event
from headway.api.log_files import JobLogs, LogPosition
from headway.api.views import job_view
from headway.core.clock import Clock, s_from_ns
from headway.store.jobs import JobRow

HEARTBEAT = b": alive\n\n"


class LogStreams:
    """Makes the streams. Each follower is one suspended generator: no thread and no worker.

    Args:
        jobs: Wakes followers.
        clock: Paces heartbeats.
        limits: Heartbeat and backup poll.
    """

    def __init__(self, jobs: LiveJobs, clock: Clock, limits: Limits) -> None:
        self._jobs = jobs
        self._clock = clock
        self._limits = limits

    async def follow(
        self, job_id: str, logs: JobLogs, start: LogPosition, place: AbstractContextManager[None]
    ) -> AsyncIterator[bytes]:
        """The stream from `start` until the job has ended and its last byte was sent.

        Args:
            job_id: Whole.
            logs: The job's.
            start: Where it begins.
            place: Held while the stream runs.
        """
        reader = LogReader(logs, start)
        said: JobRow | None = None
        spoke_ns = self._clock.monotonic_ns()
        async with self._watch(job_id, place) as live:
            live.want_log()
            while not (live.gone or self._jobs.stopping):
                change, row = live.next_change, live.row
                if row is not None:
                    # The row was read before the log is: what a finished attempt wrote is there
                    # when its row says that it is over, so nothing is missed at the end.
                    async for event in reader.events(row):
                        yield event
                        spoke_ns = self._clock.monotonic_ns()
                    if row != said:
                        yield _event(event="job", data=job_view(row).model_dump_json())
                        said, spoke_ns = row, self._clock.monotonic_ns()
                    if row.state.is_terminal:
                        yield _event(event="end", data="{}")
                        return
                await wait_for_event(change, self._limits.backup_poll_s)
                if self._is_quiet_since(spoke_ns):
                    yield HEARTBEAT
                    spoke_ns = self._clock.monotonic_ns()
            if live.gone:
                yield _event(event="end", data='{"deleted":true}')

    @asynccontextmanager
    async def _watch(
        self, job_id: str, place: AbstractContextManager[None]
    ) -> AsyncIterator[LiveJob]:
        with place:
            async with self._jobs.watch(job_id) as live:
                yield live

    def _is_quiet_since(self, spoke_ns: int) -> bool:
        quiet_s = s_from_ns(self._clock.monotonic_ns() - spoke_ns)
        return quiet_s >= self._limits.heartbeat_s


class LogReader:
    """Turns the bytes of a job's logs into events, whole characters at a time."""

    def __init__(self, logs: JobLogs, position: LogPosition) -> None:
        self._logs = logs
        self.position = position

    async def events(self, row: JobRow) -> AsyncIterator[bytes]:
        """What there is to read from the position on, as far as `row` lets the log go."""
        while True:
            piece = await self._logs.read(self.position)
            attempt_over = self._is_attempt_over(row)
            event = self._log_event(piece, last=attempt_over) if piece else None
            if event is not None:
                yield event
            elif attempt_over and self.position.attempt < row.attempt:
                self.position = LogPosition(self.position.attempt + 1, 0)
            else:
                return

    def _log_event(self, piece: bytes, *, last: bool) -> bytes | None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(piece)
        held_back = len(decoder.getstate()[0])
        if held_back and last and held_back == len(piece):
            # Nothing will complete this character any more.
            text, held_back = decoder.decode(b"", final=True), 0
        if not text:
            return None
        attempt, offset = self.position.attempt, self.position.offset
        self.position = LogPosition(attempt, offset + len(piece) - held_back)
        data = msgspec.json.encode({"attempt": attempt, "text": text}).decode()
        return _event(event="log", data=data, id=str(self.position))

    def _is_attempt_over(self, row: JobRow) -> bool:
        return row.state.is_terminal or row.attempt > self.position.attempt


def _event(event: str, data: str, id: str | None = None) -> bytes:
    """One event; `data` is JSON and has no line ends."""
    name = "" if id is None else f"id: {id}\n"
    return f"event: {event}\n{name}data: {data}\n\n".encode()

"""What a worker tells the parent of a stage: encoded records and small counters, in batches.

A batch leaves at least every FLUSH_S, so that kill -9 of anything loses no more than that, and
earlier when it is large or when a stop rule waits for an error.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Protocol

import msgspec

from headway.core.encodable import encodable
from headway.load.goodness import Judge
from headway.load.histogram import bucket_of
from headway.load.lifecycle import Request, StageFrame
from headway.load.messages import Counters, FromWorker, Report, RequestUpdate
from headway.records.record import RequestRecord

FLUSH_S = 0.05
_FLUSH_BYTES = 256 * 1024
_ENCODE_AT_ONCE = 64
"""Records encoded in one call, which halves the cost of each and takes under 0.2 ms."""
_COUNTED_FULLY = 256
"""Records of a batch whose times all enter the live histograms (5,000 requests per second)."""
_SAMPLE_STRIDE = 16
"""Beyond that one in so many does: the live view stays true and a request costs 2 us less."""
_ERRORS_KEPT = 5
"""Different error messages told with a batch; the records hold them all."""


class Outbox(Protocol):
    """Where messages to the parent go."""

    def send(self, message: FromWorker) -> None:
        """Queue a message."""
        ...

    @property
    def over_high_water(self) -> bool:
        """Whether the parent reads too slowly for what is sent."""
        ...

    async def wait_drained(self) -> None:
        """Wait until the socket has taken everything."""
        ...


class Reporter:
    """Collects one stage's batches and hands them to the outbox."""

    def __init__(
        self, frame: StageFrame, outbox: Outbox, observe: bool, judge: Judge | None = None
    ) -> None:
        self._frame = frame
        self._judge = judge
        self._outbox = outbox
        self._observe = observe
        self._encoder = msgspec.json.Encoder()
        self.in_flight = 0
        """Requests in flight, as the next batch tells it."""
        self._told_in_flight = 0
        self._exhausted_at: int | None = None
        self._batch = _Batch()

    @property
    def must_wait(self) -> bool:
        """Whether no request should begin until the parent has read more (trap 40)."""
        return self._outbox.over_high_water

    async def wait_taken(self) -> None:
        """Wait for the parent to catch up."""
        await self._outbox.wait_drained()

    @property
    def errors_waiting(self) -> bool:
        """Whether the current batch holds an error."""
        return self._batch.counters.errored > 0

    def ended(self, request: Request, record: RequestRecord, conversation_over: bool) -> None:
        """Take the terminal record of a request."""
        batch = self._batch
        batch.records.append(record)
        if conversation_over:
            batch.ended.append(record.index)
        else:
            batch.open_turns.append((record.index, record.turn))
        batch.count(record)
        if self._observe:
            now_ns = request.progress.done_ns or request.turn.due_ns
            batch.updates += request.updates(now_ns, record.status)
        if len(batch.records) >= _ENCODE_AT_ONCE:
            batch.encode(self._encoder, self._judge)
            if len(batch.lines) > _FLUSH_BYTES:
                self.flush()

    def dropped(self, indices: Iterable[int], exhausted_at: int | None) -> None:
        """Arrivals that were handed out and turned out not to be offered."""
        self._batch.dropped.extend(indices)
        self._exhausted_at = exhausted_at

    def watched(self, requests: Iterable[Request], now_ns: int) -> None:
        """Add the changes of requests that still run, when somebody watches."""
        if self._observe:
            for request in requests:
                self._batch.updates += request.updates(now_ns)

    def flush(self) -> None:
        """Send the batch, if there is anything in it."""
        batch = self._batch
        if batch.is_empty and self._told_in_flight == self.in_flight:
            return
        self._batch = _Batch()
        self._told_in_flight = self.in_flight
        batch.encode(self._encoder, self._judge)
        if batch.counters.sent or batch.counters.errored:
            batch.counters.last_sent_ns += self._frame.start_ns
        self._outbox.send(
            Report(
                stage=self._frame.stage,
                records=bytes(batch.lines),
                ended=batch.ended.tobytes(),
                open_turns=batch.open_turns,
                dropped=batch.dropped.tobytes(),
                in_flight=self.in_flight,
                counters=batch.counters,
                exhausted_at=self._exhausted_at,
                updates=batch.updates,
            )
        )


class _Batch:
    """What has happened since the last report."""

    def __init__(self) -> None:
        self.records: list[RequestRecord] = []
        self.lines = bytearray()
        self.ended = array("q")
        self.open_turns: list[tuple[int, int]] = []
        self.dropped = array("q")
        self.updates: list[RequestUpdate] = []
        self.counters = Counters()
        self._timed = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.records or self.lines or self.dropped or self.updates)

    def encode(self, encoder: msgspec.json.Encoder, judge: Judge | None) -> None:
        """Turn the records at hand into lines, and their times into the histograms."""
        if not self.records:
            return
        try:
            self.lines += encoder.encode_lines(self.records)
        except UnicodeEncodeError:  # Of 64 records at once: which one it was is not said.
            plain = [encodable(msgspec.to_builtins(record)) for record in self.records]
            self.lines += encoder.encode_lines(plain)
        stride = 1 if self._timed < _COUNTED_FULLY else _SAMPLE_STRIDE
        for record in self.records[::stride]:
            _add_times(self.counters, record)
        if judge is not None:
            self.counters.good += sum(map(judge, self.records))
        self._timed += len(self.records)
        self.records.clear()

    def count(self, record: RequestRecord) -> None:
        """Add one ended request to the counters."""
        counters, sent_ns = self.counters, record.sent_ns
        if sent_ns is not None:
            counters.sent += 1
            if sent_ns > counters.last_sent_ns:
                counters.last_sent_ns = sent_ns
        elif record.status == "errored" and record.due_ns > counters.last_sent_ns:
            # Tried in vain, as where nothing listens: the stage lasted as long as that all the
            # same. It was taken for over when its target died, and 74 of 75 failures left out.
            counters.last_sent_ns = record.due_ns
        if record.status == "completed":
            counters.completed += 1
            counters.trailing_errors = 0
        elif record.status == "errored":
            self._count_error(record)
        else:
            counters.cancelled += 1

    def _count_error(self, record: RequestRecord) -> None:
        counters = self.counters
        counters.errored += 1
        counters.trailing_errors += 1
        counters.longest_errors = max(counters.longest_errors, counters.trailing_errors)
        if not counters.completed:
            counters.leading_errors += 1
        if record.failure is not None:
            messages = counters.error_messages
            if record.failure.message in messages or len(messages) < _ERRORS_KEPT:
                seen = messages.get(record.failure.message, 0)
                messages[record.failure.message] = seen + 1


def _add_times(counters: Counters, record: RequestRecord) -> None:
    sent_ns = record.sent_ns
    if sent_ns is None:
        return
    _add(counters.lateness, sent_ns - record.due_ns)
    if record.first_token_ns is not None:
        _add(counters.ttft, record.first_token_ns - sent_ns)
    if record.status == "completed" and record.done_ns is not None:
        _add(counters.latency, record.done_ns - sent_ns)


def _add(counts: dict[int, int], value_ns: int) -> None:
    bucket = bucket_of(value_ns)
    counts[bucket] = counts.get(bucket, 0) + 1

"""The life of one request, and the one place where it ends.

queued → pending → in_progress → first_token → completed | errored | cancelled

A request object gives out its terminal record once and refuses a second (trap 35: requests in
flight at a deadline were reported both as ended and as cancelled). Live updates are read off the
progress that the backend fills anyway, when a batch is sent, so that watching costs the hot path
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.backends.backend import Progress
from headway.core.errors import InternalError
from headway.load.conversation import TurnRun
from headway.load.messages import RequestState, RequestUpdate
from headway.records.record import MAX_BODY_CHARS, Failure, RequestRecord, Status
from headway.wire.exchange import Exchange


class StageFrame:
    """What the records of one stage on one worker have in common."""

    __slots__ = ("capture_text", "new_record", "stage", "start_ns")

    def __init__(self, stage: int, worker: int, start_ns: int, capture_text: bool) -> None:
        self.stage = stage
        self.start_ns = start_ns
        self.capture_text = capture_text
        blank = RequestRecord(stage=stage, index=0, worker=worker, status="cancelled", due_ns=0)
        # Not copy.copy(blank), which looks this method up again for each request: 1.7 us less.
        self.new_record: Callable[[], RequestRecord] = blank.__copy__  # type: ignore[attr-defined] # missing in the stubs
        """Gives a copy of what each record begins as."""


class Request:
    """One request from the moment it was handed out."""

    __slots__ = ("_frame", "_told", "exchange", "is_ended", "progress", "turn")

    def __init__(self, turn: TurnRun, frame: StageFrame) -> None:
        self.turn = turn
        self.progress = Progress()
        self.exchange: Exchange | None = None
        """What carries it, when no coroutine does."""
        self.is_ended = False
        self._frame = frame
        self._told = 0

    def end(self, status: Status, now_ns: int, failure: Failure | None = None) -> RequestRecord:
        """The terminal record, with all that was known by now.

        Raises:
            InternalError: the request has ended already.
        """
        if self.is_ended:
            raise InternalError("a request was ended twice")
        self.is_ended = True
        turn = self.turn
        record = self._frame.new_record()
        record.index = turn.conversation.index
        record.turn = turn.number
        record.status = status
        record.asked_output_tokens = turn.call.output_tokens
        record.failure = failure
        self._fill(record, now_ns)
        return record

    # Attributes are set one by one on a copy, and in one go: this runs for every request. The
    # constructor with its 28 keywords took 3.3 us where this takes 1.6.
    def _fill(self, record: RequestRecord, now_ns: int) -> None:
        progress, start_ns = self.progress, self._frame.start_ns
        record.due_ns = self.turn.due_ns - start_ns
        record.pool_wait_ns = progress.pool_wait_ns
        record.connect_ns = progress.connect_ns
        record.tls_ns = progress.tls_ns
        if progress.sent_ns is not None:
            record.sent_ns = progress.sent_ns - start_ns
            record.done_ns = now_ns - start_ns
        if progress.done_ns is not None:
            record.done_ns = progress.done_ns - start_ns
        if progress.first_byte_ns is not None:
            record.first_byte_ns = progress.first_byte_ns - start_ns
        if progress.first_token_ns is not None:
            record.first_token_ns = progress.first_token_ns - start_ns
        if progress.first_content_ns is not None:
            record.first_content_ns = progress.first_content_ns - start_ns
        if progress.last_token_ns is not None:
            record.last_token_ns = progress.last_token_ns - start_ns
        record.chunks = progress.chunks
        record.gaps_ns = progress.gaps_ns
        record.input_tokens = progress.input_tokens
        record.cached_tokens = progress.cached_tokens
        record.output_tokens = progress.output_tokens
        record.output_tokens_source = progress.output_tokens_source
        record.finish_reason = progress.finish_reason
        record.response_bytes = progress.response_bytes
        record.connection_reused = progress.connection_reused
        record.resent = progress.resent
        text = progress.text
        if text is not None and (record.status != "completed" or self._frame.capture_text):
            record.partial_text = text[:MAX_BODY_CHARS]

    def updates(self, now_ns: int, ended: Status | None = None) -> list[RequestUpdate]:
        """The changes since this was last asked, each with the time it happened."""
        told, self._told = self._told, len(self._reached(now_ns, ended))
        return [self._update(state, at) for state, at in self._reached(now_ns, ended)[told:]]

    def _reached(self, now_ns: int, ended: Status | None) -> list[tuple[RequestState, int]]:
        progress, due = self.progress, self.turn.due_ns
        reached: list[tuple[RequestState, int]] = [("queued", min(due, now_ns))]
        if due <= now_ns:
            reached.append(("pending", due))
        if progress.sent_ns is not None:
            reached.append(("in_progress", progress.sent_ns))
        if progress.first_token_ns is not None:
            reached.append(("first_token", progress.first_token_ns))
        if ended is not None:
            reached.append((ended, progress.done_ns or now_ns))
        return reached

    def _update(self, state: RequestState, at_ns: int) -> RequestUpdate:
        turn, frame = self.turn, self._frame
        relative_ns = at_ns - frame.start_ns
        return RequestUpdate(frame.stage, turn.conversation.index, turn.number, state, relative_ns)

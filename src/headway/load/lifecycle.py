"""The life of one request, and the one place where it ends.

queued → pending → in_progress → first_token → completed | errored | cancelled

A request object gives out its terminal record once and refuses a second (trap 35: requests in
flight at a deadline were reported both as ended and as cancelled). Live updates are read off the
progress that the backend fills anyway, when a batch is sent, so that watching costs the hot path
nothing.
"""

from __future__ import annotations

from headway.backends.backend import Progress
from headway.core.errors import InternalError
from headway.load.conversation import TurnRun
from headway.load.messages import RequestState, RequestUpdate
from headway.records.record import MAX_BODY_CHARS, Failure, RequestRecord, Status
from headway.wire.exchange import Exchange


class StageFrame:
    """What the records of one stage on one worker have in common."""

    __slots__ = ("capture_text", "stage", "start_ns", "worker")

    def __init__(self, stage: int, worker: int, start_ns: int, capture_text: bool) -> None:
        self.stage = stage
        self.worker = worker
        self.start_ns = start_ns
        self.capture_text = capture_text


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
        frame, turn, progress = self._frame, self.turn, self.progress
        start_ns, sent_ns, done_ns = frame.start_ns, progress.sent_ns, progress.done_ns
        first_byte_ns, first_token_ns = progress.first_byte_ns, progress.first_token_ns
        first_content_ns, last_token_ns = progress.first_content_ns, progress.last_token_ns
        if done_ns is None and sent_ns is not None:
            done_ns = now_ns
        text = progress.text
        if text is not None:
            is_kept = status != "completed" or frame.capture_text
            text = text[:MAX_BODY_CHARS] if is_kept else None
        # In the order of the record's fields: this runs for every request.
        return RequestRecord(
            frame.stage,
            turn.conversation.index,
            status,
            turn.due_ns - start_ns,
            turn.number,
            frame.worker,
            None if sent_ns is None else sent_ns - start_ns,
            progress.pool_wait_ns,
            progress.connect_ns,
            progress.tls_ns,
            None if first_byte_ns is None else first_byte_ns - start_ns,
            None if first_token_ns is None else first_token_ns - start_ns,
            None if first_content_ns is None else first_content_ns - start_ns,
            None if last_token_ns is None else last_token_ns - start_ns,
            None if done_ns is None else done_ns - start_ns,
            progress.chunks,
            progress.gaps_ns,
            progress.input_tokens,
            progress.cached_tokens,
            progress.output_tokens,
            progress.output_tokens_source,
            turn.call.output_tokens,
            progress.finish_reason,
            progress.response_bytes,
            progress.connection_reused,
            progress.resent,
            text,
            failure,
        )

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

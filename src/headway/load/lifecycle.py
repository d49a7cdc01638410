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

    __slots__ = ("_frame", "_told", "is_ended", "progress", "turn")

    def __init__(self, turn: TurnRun, frame: StageFrame) -> None:
        self.turn = turn
        self.progress = Progress()
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
        turn, progress, start = self.turn, self.progress, self._frame.start_ns
        # Spelt out field by field: this runs for every request, and a loop over names costs 5 µs.
        sent, byte, token = progress.sent_ns, progress.first_byte_ns, progress.first_token_ns
        content, last, done = progress.first_content_ns, progress.last_token_ns, progress.done_ns
        if done is None and sent is not None:
            done = now_ns
        return RequestRecord(
            stage=self._frame.stage,
            index=turn.conversation.index,
            turn=turn.number,
            worker=self._frame.worker,
            status=status,
            due_ns=turn.due_ns - start,
            sent_ns=None if sent is None else sent - start,
            pool_wait_ns=progress.pool_wait_ns,
            connect_ns=progress.connect_ns,
            tls_ns=progress.tls_ns,
            first_byte_ns=None if byte is None else byte - start,
            first_token_ns=None if token is None else token - start,
            first_content_ns=None if content is None else content - start,
            last_token_ns=None if last is None else last - start,
            done_ns=None if done is None else done - start,
            chunks=progress.chunks,
            gaps_ns=progress.gaps_ns,
            input_tokens=progress.input_tokens,
            cached_tokens=progress.cached_tokens,
            output_tokens=progress.output_tokens,
            output_tokens_source=progress.output_tokens_source,
            asked_output_tokens=turn.call.output_tokens,
            finish_reason=progress.finish_reason,
            response_bytes=progress.response_bytes,
            connection_reused=progress.connection_reused,
            resent=progress.resent,
            partial_text=self._text_to_keep(status),
            failure=failure,
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

    def _text_to_keep(self, status: Status) -> str | None:
        text = self.progress.text
        if text is None or (status == "completed" and not self._frame.capture_text):
            return None
        return text[:MAX_BODY_CHARS]

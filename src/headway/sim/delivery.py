"""Carries a reply to its client as the engine makes tokens, with whatever is to go wrong in it."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from headway.core.clock import NS_PER_MS, NS_PER_S, monotonic_ns
from headway.sim.answers import request_id_header
from headway.sim.dialect import Memoized
from headway.sim.exchange import Exchange
from headway.sim.http import (
    CHUNKED,
    JSON,
    UNTIL_CLOSE,
    content_length,
    response_head,
)
from headway.sim.precise_timer import PreciseTimer
from headway.sim.reply import ReplyPlan
from headway.sim.script import IDENT, Usage, frame
from headway.sim.truth import Truth

_CUT_DELAY_NS = 5 * NS_PER_MS
"""Between the last bytes and a reset or close, so that the kernel has sent those bytes."""

EVENT_STREAM = b"text/event-stream; charset=utf-8"
_MALFORMED_EVENT = b'data: {"id": "broken", "choices": [{"delta": \n\n'


class Parcel(msgspec.Struct):
    """A reply to be delivered: to whom, how it looks, and its account."""

    exchange: Exchange
    dialect: Memoized
    plan: ReplyPlan
    include_usage: bool
    truth: Truth

    def usage(self) -> bytes:
        """The reply's usage, as its API writes it."""
        truth, plan = self.truth, self.plan
        return self.dialect.usage(
            Usage(
                truth.prompt_tokens,
                truth.cached_tokens,
                plan.output_tokens,
                plan.reasoning_tokens,
            )
        )

    def head(self, content_type: bytes, framing: bytes) -> bytes:
        """The response's head."""
        request = self.exchange.request
        head = response_head(200, content_type, framing, request.keep_alive)
        return head + request_id_header(request) + b"\r\n"

    def whole_body(self) -> bytes:
        """The reply in one piece."""
        before, after = self.dialect.whole(self.plan)
        usage = self.usage() if self.exchange.faults.usage else b"null"
        return b"".join((before, usage, after)).replace(IDENT, self.truth.ident.encode())


def deliver_at_once(parcel: Parcel, streamed: bool) -> None:
    """Write a sound reply in one call: the shortest way, for replies that wait for nothing.

    Not for HTTP/1.0.
    """
    truth, plan = parcel.truth, parcel.plan
    if streamed:
        ident = truth.ident.encode()
        closing = parcel.dialect.script(plan).closing(
            parcel.usage() if parcel.include_usage else None
        )
        body = ident.join(parcel.dialect.burst(plan)) + closing.replace(IDENT, ident)
        head = parcel.head(EVENT_STREAM, CHUNKED)
        truth.first_token_ns = monotonic_ns()
    else:
        body = parcel.whole_body()
        head = parcel.head(JSON, content_length(body))
    parcel.exchange.connection.send(head + body)
    truth.output_tokens = plan.output_tokens
    truth.end_ns = monotonic_ns()
    truth.outcome = "completed"


class Delivery:
    """One reply on its way. Subclasses say what is written when.

    Args:
        parcel: The reply.
        timer: For stalls and for what follows the last bytes.
        ended: Told once, whatever ended the exchange.
    """

    streamed = False
    """Whether it wants each token as it is made, or only the last."""

    def __init__(
        self, parcel: Parcel, timer: PreciseTimer, ended: Callable[[Delivery], None]
    ) -> None:
        self.truth = parcel.truth
        self._connection = parcel.exchange.connection
        self._parcel = parcel
        self._plan = parcel.plan
        self._faults = parcel.exchange.faults
        self._timer = timer
        self._ended: Callable[[Delivery], None] | None = ended
        self._ident = parcel.truth.ident.encode()
        self._connection.listener = self

    @property
    def open(self) -> bool:
        """Whether anybody still waits for the reply."""
        return self._ended is not None

    def ready(self, tokens: int, now_ns: int) -> None:
        """Take note that the first `tokens` tokens of the reply exist.

        A stall moves everything from its position on by the same time.
        """
        stall_at = self._faults.stall_at
        if stall_at is None or tokens <= stall_at:
            self._write(tokens)
        elif self._faults.stall_s < math.inf:
            due_ns = now_ns + int(self._faults.stall_s * NS_PER_S)
            self._timer.call_at(due_ns, lambda _: self._write(tokens))

    def client_left(self) -> None:
        """The client closed the connection."""
        self._end("client_left")

    def abandon(self) -> None:
        """The server is ending."""
        self._end("shutdown")

    def _write(self, tokens: int) -> None:
        raise NotImplementedError

    def _complete(self) -> None:
        self._end("completed")
        idle_s = self._faults.close_idle_s
        self._connection.finish()
        if idle_s is not None:
            # After the reply and unannounced, like a server whose keep-alive timeout ends then.
            self._later(self._connection.close, int(idle_s * NS_PER_S))

    def _break_off(self) -> None:
        self._end("cut")
        if self._faults.reset_at is not None:
            self._later(self._connection.reset)
        else:
            self._later(self._connection.close)

    def _later(self, act: Callable[[], None], delay_ns: int = 0) -> None:
        self._timer.call_at(monotonic_ns() + _CUT_DELAY_NS + delay_ns, lambda _: act())

    def _end(self, outcome: str) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            self.truth.end_ns = monotonic_ns()
            self.truth.outcome = outcome
            ended(self)


class StreamDelivery(Delivery):
    """A reply as server-sent events."""

    streamed = True

    def __init__(
        self, parcel: Parcel, timer: PreciseTimer, ended: Callable[[Delivery], None]
    ) -> None:
        super().__init__(parcel, timer, ended)
        self._script = parcel.dialect.script(parcel.plan)
        self._written = 0
        self._unsent_head = parcel.head(
            EVENT_STREAM, CHUNKED if self._plan.chunked else UNTIL_CLOSE
        )
        self._cut_at = self._faults.cut_at

    def open_early(self) -> None:
        """Send the head, and what comes before the first token, ahead of it."""
        if self._faults.stall_at != 0 and self._cut_at != 0:
            self._send([self._script.opening])

    def _write(self, tokens: int) -> None:
        if self._ended is None:
            return
        if self._cut_at is not None and tokens > self._cut_at:
            self._write_cut(self._cut_at)
            return
        parts = self._frames(tokens)
        if self._written == 0:
            parts.insert(0, self._script.opening if self._unsent_head else b"")
            self.truth.first_token_ns = monotonic_ns()
        self._written = self.truth.output_tokens = tokens
        last = tokens >= self._plan.output_tokens
        if last:
            usage = (
                self._parcel.usage() if self._parcel.include_usage and self._faults.usage else None
            )
            parts.append(self._script.closing(usage, self._faults.done))
        self._send(parts)
        if last:
            self._complete()

    def _frames(self, tokens: int) -> list[bytes]:
        frames = list(self._script.frames[self._written : tokens])
        malformed_at = self._faults.malformed_at
        if malformed_at is not None and self._written <= malformed_at < tokens:
            event = frame(_MALFORMED_EVENT, self._plan.chunked)
            frames.insert(malformed_at - self._written, event)
        return frames

    def _write_cut(self, cut_at: int) -> None:
        parts = self._frames(cut_at)
        self.truth.output_tokens = cut_at
        if parts and self._written == 0:
            self.truth.first_token_ns = monotonic_ns()
        if cut_at == self._faults.error_event_at:
            parts.append(frame(self._parcel.dialect.error_event(), self._plan.chunked))
            parts.append(b"0\r\n\r\n" if self._plan.chunked else b"")
            self._send(parts)
            self._end("error_event")
            self._connection.finish()
            return
        if parts:
            self._send(parts)
        self._break_off()

    def _send(self, parts: list[bytes]) -> None:
        data = b"".join(parts).replace(IDENT, self._ident)
        head, self._unsent_head = self._unsent_head, b""
        if head or data:
            self._connection.send(head + data)


class WholeDelivery(Delivery):
    """A reply in one piece."""

    def _write(self, tokens: int) -> None:
        if self._ended is None:
            return
        if self._faults.cut_at is not None:
            self._break_off()
        elif tokens >= self._plan.output_tokens:
            body = self._parcel.whole_body()
            if self._faults.malformed_at is not None:
                body = body[: len(body) // 2]
            self.truth.output_tokens = tokens
            self._connection.send(self._parcel.head(JSON, content_length(body)) + body)
            self._complete()

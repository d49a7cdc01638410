"""The backends of the OpenAI family: one way of asking, four dialects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headway.backends.backend import Answer, Call, Message, Progress, TargetInfo
from headway.backends.bodies import PromptBodies
from headway.backends.dialect import Dialect, ReplySummary
from headway.backends.direct import DirectPath
from headway.backends.discovery import discover
from headway.backends.endpoint import Endpoint
from headway.backends.failures import error_text, failure_of, reply_failure
from headway.backends.http_progress import carry_over, fail_at_now
from headway.backends.spec import OpenAIBackendSpec
from headway.backends.stream import FirstTokenWatch, measure
from headway.records.record import MAX_BODY_CHARS, Failure
from headway.wire.exchange import Exchange, WireRequest
from headway.wire.fast import FastTransport
from headway.wire.sse import SseSplitter

_encode = msgspec.json.Encoder().encode


class OpenAIBackend:
    """Asks one model of one target.

    Args:
        spec: What to ask for.
        dialect: How this endpoint says it.
        endpoint: The target.
        model: None: `validate` finds out what there is.
    """

    def __init__(
        self, spec: OpenAIBackendSpec, dialect: Dialect, endpoint: Endpoint, model: str | None
    ) -> None:
        self._spec = spec
        self._dialect = dialect
        self._endpoint = endpoint
        path = endpoint.api_path + dialect.path
        self._question = WireRequest("POST", path, endpoint.headers)
        self._has_watch = endpoint.timeouts.first_token_s is not None and spec.stream
        self._take_model(model)

    async def startup(self) -> None:
        await self._endpoint.startup()

    async def validate(self) -> TargetInfo:
        info = await discover(self._endpoint, self._model)
        self._take_model(info.model)
        return info

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        exchange = self.new_exchange()
        question = self._question
        request = WireRequest(
            question.method, question.path, question.headers, self.body(call, history)
        )
        answer = Answer()
        try:
            await self._endpoint.transport.exchange(request, exchange, self._endpoint.timeouts)
        finally:
            # Also when this is cancelled: what had come by then is kept (trap 35).
            answer = self.read(exchange, progress)
        return answer

    async def shutdown(self) -> None:
        await self._endpoint.shutdown()

    @property
    def direct(self) -> DirectPath | None:
        """The way without coroutines, where the transport has it."""
        transport = self._endpoint.transport
        if not isinstance(transport, FastTransport):
            return None
        return DirectPath(self, transport, self._question, self._endpoint.timeouts)

    def new_exchange(self) -> Exchange:
        """An exchange for one request."""
        return Exchange(watch=self._make_watch()) if self._has_watch else Exchange()

    def read(self, exchange: Exchange, progress: Progress) -> Answer:
        """What came back, whole or not."""
        carry_over(exchange, progress)
        summary, failure = self._read(exchange, progress)
        if failure is not None:
            fail_at_now(progress)
            return Answer(failure=failure)
        return Answer(message=summary.message)

    def body(self, call: Call, history: tuple[Message, ...]) -> bytes:
        """The body of a request: what was asked for and nothing else (trap 49)."""
        if call.prompt is not None and not (history or call.messages or call.body):
            body = self._prompt_bodies.body(call)
            if body is not None:
                return body
        return self._render(call, history)

    def _render(self, call: Call, history: tuple[Message, ...] = ()) -> bytes:
        fields = self._dialect.question(call, history)
        tokens_field = self._dialect.output_tokens_field
        if call.output_tokens is not None and tokens_field is not None:
            fields[self._spec.output_tokens_field or tokens_field] = call.output_tokens
        extra = self._spec.extra_body
        if not extra and not call.body:
            # What every body has in common is encoded once. Each part has at least one field.
            return self._prefix + _encode(fields)[1:] if self._prefix else _encode(fields)
        return _encode(self._fields | fields | extra | (call.body or {}))

    def _take_model(self, model: str | None) -> None:
        self._model = model
        self._fields = self._fixed_fields()
        self._prompt_bodies = PromptBodies(self._render)
        self._prefix = _encode(self._fields)[:-1] + b"," if self._fields else b""

    def _fixed_fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self._model is not None:
            fields["model"] = self._model
        if self._spec.stream and self._dialect.can_stream:
            fields["stream"] = True
            if self._spec.include_usage and self._dialect.can_include_usage:
                fields["stream_options"] = {"include_usage": True}
        return fields

    def _make_watch(self) -> Callable[[int, bytes], bool]:
        return FirstTokenWatch(self._carries_token)

    def _carries_token(self, data: bytes) -> bool:
        event = self._dialect.decoder.decode_one(data)
        return event is not None and self._dialect.new_reply().add([event])[0] > 0

    def _read(self, exchange: Exchange, progress: Progress) -> tuple[ReplySummary, Failure | None]:
        reads, status = exchange.reads, exchange.status
        failure = None
        if exchange.failure is not None or status is None or status >= 300 or not reads:
            redactor = self._endpoint.redactor
            failure = failure_of(exchange, redactor)
            if status is None or status >= 300 or not reads:
                if failure is None:
                    failure = reply_failure("protocol", "the reply is empty", exchange, redactor)
                return ReplySummary(), failure
        summary, complaint = self._read_body(exchange, progress)
        fill(summary, progress)
        if failure is None and (
            complaint is not None or summary.error is not None or summary.finish_reason is None
        ):
            failure = self._failure_inside(exchange, summary, complaint)
        return summary, failure

    def _failure_inside(
        self, exchange: Exchange, summary: ReplySummary, complaint: str | None
    ) -> Failure | None:
        """What went wrong in a reply that HTTP says is fine."""
        redactor = self._endpoint.redactor
        error = summary.error
        if error is None and summary.finish_reason is None and complaint is None:
            error = stray_error(exchange.body)
        if error is not None:
            return Failure(
                category="server",
                message="the server reported an error inside its reply",
                status=exchange.status,
                body=redactor.redact(error)[:MAX_BODY_CHARS],
            )
        if complaint is not None:
            return reply_failure("protocol", complaint, exchange, redactor)
        return None

    def _read_body(self, exchange: Exchange, progress: Progress) -> tuple[ReplySummary, str | None]:
        """What the body says, and what is wrong with it, if anything."""
        start = exchange.reads[0][1]
        # Told by its first byte: no server-sent event begins with a brace, every JSON reply does,
        # and servers that ignore `stream` or report an error answer with JSON.
        if start.startswith(b"{") or start[:64].lstrip().startswith(b"{"):
            return self._read_whole(start if len(exchange.reads) == 1 else exchange.body)
        if start[:64].lstrip().startswith(b"<"):
            return ReplySummary(), "the reply is an HTML page, not one of the OpenAI API"
        dialect = self._dialect
        groups, is_malformed = dialect.decoder.decode(exchange.reads, exchange.done_ns is not None)
        reply = dialect.new_reply()
        measure(groups, reply, progress)
        complaint = None
        if is_malformed:
            complaint = "an event of the stream is not JSON of the OpenAI API"
        elif not groups:
            complaint = "the reply holds no event of the OpenAI API"
        return reply.summary(), complaint

    def _read_whole(self, body: bytes) -> tuple[ReplySummary, str | None]:
        dialect = self._dialect
        event = dialect.decoder.decode_one(body)
        if event is None or not dialect.is_reply(event):
            return ReplySummary(), "the reply is not JSON of the OpenAI API"
        summary = dialect.plain_summary(event)
        if summary is None:
            reply = dialect.new_reply()
            reply.add([event])
            summary = reply.summary()
        return summary, None


def stray_error(body: bytes) -> str | None:
    """An error in a form of its own: `event: error`, or `{"object": "error", ...}` as an event.

    Looked for only when a stream ended without saying how, so that it costs nothing otherwise.
    """
    if b"event: error" not in body and b'"error"' not in body:
        return None
    splitter = SseSplitter()
    events = splitter.feed(body) + splitter.finish()
    found = [text for data in events if b'"choices"' not in data and (text := error_text(data))]
    return found[-1] if found else None


def fill(summary: ReplySummary, progress: Progress) -> None:
    """What a reply said of itself; tokens by the server's count, else by the chunks that came."""
    progress.text = summary.text
    progress.finish_reason = summary.finish_reason
    usage = summary.usage
    if usage is not None:
        progress.input_tokens = usage.prompt_tokens
        progress.output_tokens = usage.completion_tokens
        if usage.prompt_tokens is None:
            progress.input_tokens = usage.input_tokens
        if usage.completion_tokens is None:
            progress.output_tokens = usage.output_tokens
        if usage.prompt_tokens_details is not None or usage.input_tokens_details is not None:
            progress.cached_tokens = usage.cached
    if progress.output_tokens is not None:
        progress.output_tokens_source = "usage"
    elif progress.chunks is not None:
        progress.output_tokens = progress.chunks
        progress.output_tokens_source = "chunks"

"""Any HTTP request: for servers that speak no API of the other backends."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from headway.backends.backend import Answer, Call, Message, Progress, TargetInfo
from headway.backends.direct import DirectPath
from headway.backends.endpoint import Endpoint, with_headers
from headway.backends.failures import failure_of, reply_failure
from headway.backends.http_progress import carry_over, fail_at_now
from headway.backends.spec import HttpBackendSpec
from headway.backends.stream import FirstTokenWatch, measure
from headway.backends.template import BodyTemplate
from headway.core.errors import InputError, TargetError
from headway.records.record import Failure
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.fast import FastTransport
from headway.wire.head import check_head
from headway.wire.sse import add_to_last_read, split_reads

_VALIDATE_TOTAL_S = 10.0
_LINE = re.compile(rb"[^\r\n]+")


class HttpBackend:
    """Sends a filled-in template; each event or line of a streamed reply counts as a chunk."""

    def __init__(self, spec: HttpBackendSpec, endpoint: Endpoint) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._method = spec.method.upper()
        self._path = (endpoint.origin.path + _with_slash(spec.path)) or "/"
        self._headers = with_headers(endpoint.headers, spec.headers)
        self._template = BodyTemplate(spec.body) if spec.body is not None else None
        if self._template is None:
            self._headers.pop("Content-Type", None)
        self._question = WireRequest(self._method, self._path, self._headers)

    async def startup(self) -> None:
        check_head(self._method, self._path, self._headers)
        await self._endpoint.startup()

    async def validate(self) -> TargetInfo:
        """Any HTTP answer to a GET of the target's root will do: the request itself may change
        what it asks of.
        """
        given = self._endpoint.timeouts
        patience = Timeouts(
            connect_s=given.connect_s, total_s=min(given.total_s, _VALIDATE_TOTAL_S)
        )
        path = self._path if self._method == "GET" else self._endpoint.origin.path or "/"
        exchange = await self._endpoint.ask("GET", path, timeouts=patience)
        url = self._endpoint.origin.url
        if exchange.failure is not None:
            raise TargetError(f"cannot measure {url}: {exchange.failure.message}")
        return TargetInfo(
            url=url + self._endpoint.origin.path, server=exchange.headers.get("server")
        )

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        try:
            body = self.body(call, history)
        except InputError as error:
            return Answer(failure=Failure(category="backend", message=str(error)))
        exchange = self.new_exchange()
        question = self._question
        request = WireRequest(question.method, question.path, question.headers, body)
        answer = Answer()
        try:
            await self._endpoint.transport.exchange(request, exchange, self._endpoint.timeouts)
        finally:
            answer = self.read(exchange, progress)
        return answer

    @property
    def direct(self) -> DirectPath | None:
        """The way without coroutines, where the transport has it."""
        transport = self._endpoint.transport
        if not isinstance(transport, FastTransport):
            return None
        return DirectPath(self, transport, self._question, self._endpoint.timeouts)

    def new_exchange(self) -> Exchange:
        """An exchange for one request."""
        return Exchange(watch=self._make_watch())

    def body(self, call: Call, history: tuple[Message, ...]) -> bytes:
        """The template, filled in; raises InputError when a place has no value."""
        return b"" if self._template is None else self._template.fill(_values(call))

    def read(self, exchange: Exchange, progress: Progress) -> Answer:
        """What came back, whole or not."""
        carry_over(exchange, progress)
        failure = self._read(exchange, progress)
        if failure is not None:
            fail_at_now(progress)
            return Answer(failure=failure)
        return Answer(message=Message("assistant", progress.text or ""))

    async def shutdown(self) -> None:
        await self._endpoint.shutdown()

    def _make_watch(self) -> Callable[[int, bytes], bool] | None:
        # Without events every byte of a body is a token; the transport then needs no watch.
        return FirstTokenWatch(_is_token) if self._spec.stream == "sse" else None

    def _read(self, exchange: Exchange, progress: Progress) -> Failure | None:
        failure = failure_of(exchange, self._endpoint.redactor)
        if exchange.status is None or exchange.status >= 300:
            return failure
        if self._spec.stream == "none":
            progress.text = exchange.body.decode("utf-8", "replace")
            return failure
        is_whole = exchange.done_ns is not None
        split = split_reads if self._spec.stream == "sse" else split_lines
        reply = _Chunks()
        measure(split(exchange.reads, is_whole), reply, progress)
        progress.text = reply.text
        progress.output_tokens = progress.chunks
        progress.output_tokens_source = "chunks"
        if failure is None and not progress.chunks:
            return reply_failure(
                "protocol", "the streamed reply is empty", exchange, self._endpoint.redactor
            )
        return failure


class _Chunks:
    """Counts events or lines; what they hold is kept as text."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def add(self, events: list[bytes]) -> tuple[int, bool]:
        carrying = [data for data in events if _is_token(data)]
        self._chunks += carrying
        return len(carrying), bool(carrying)

    @property
    def text(self) -> str:
        return b"\n".join(self._chunks).decode("utf-8", "replace")


def split_lines(reads: list[tuple[int, bytes]], is_whole: bool) -> list[tuple[int, list[bytes]]]:
    """The non-empty lines that each read completed; a rest counts when the reply is whole."""
    groups: list[tuple[int, list[bytes]]] = []
    rest = b""
    for time_ns, piece in reads:
        complete, found, rest_of_piece = piece.rpartition(b"\n")
        if not found:
            rest += piece
            continue
        groups.append((time_ns, _LINE.findall(rest + complete)))
        rest = rest_of_piece
    if is_whole and rest:
        add_to_last_read(groups, reads[-1][0], _LINE.findall(rest))
    return groups


def _is_token(data: bytes) -> bool:
    text = data.strip()
    return bool(text) and text != b"[DONE]"


def _values(call: Call) -> dict[str, Any]:
    values = dict(call.variables or {})
    values["prompt"] = call.as_text()
    if call.output_tokens is not None:
        values["output_tokens"] = call.output_tokens
    if call.body:
        values |= call.body
    return values


def _with_slash(path: str) -> str:
    return path if not path or path.startswith(("/", "?")) else f"/{path}"

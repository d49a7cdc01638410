"""Decoding of server-sent events, byte by byte as they arrive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headway.core.errors import InternalError

MAX_EVENT_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class ServerSentEvent:
    """One event: its type, its data, and the id to resume after it (None: none was given)."""

    event: str
    data: str
    id: str | None


class EventStreamDecoder:
    """Collects bytes and yields each complete event.

    Source: the WHATWG HTML standard, section "Server-sent events", interpreting an event stream.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Add `chunk`; yield the events that are now complete, in order."""
        self._buffer += chunk
        *lines, rest = bytes(self._buffer).split(b"\n")
        if len(rest) > MAX_EVENT_BYTES:
            raise InternalError(f"the server sent an event of over {MAX_EVENT_BYTES} bytes")
        self._buffer = bytearray(rest)
        for line in lines:
            complete = self._take(line.removesuffix(b"\r").decode("utf-8", "replace"))
            if complete is not None:
                yield complete

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        data, event, event_id = self._data, self._event, self._id
        self._data, self._event, self._id = [], "", None
        if not data:
            return None
        return ServerSentEvent(event or "message", "\n".join(data), event_id)

"""`/embeddings`: text in, vectors out, of which only the count matters here."""

from __future__ import annotations

from typing import Any

from headway.backends.backend import Call, Message
from headway.backends.dialect import ReplySummary
from headway.backends.failures import error_message
from headway.backends.openai_events import EmbeddingReply, Usage
from headway.backends.stream import EventDecoder


class EmbeddingsDialect:
    """Asks for the vector of a call's text; there is no stream, no output length, no history."""

    path = "/embeddings"
    output_tokens_field = None
    can_stream = False
    can_include_usage = False

    def __init__(self) -> None:
        self.decoder = EventDecoder(EmbeddingReply)

    def question(self, call: Call, history: tuple[Message, ...]) -> dict[str, Any]:
        return {"input": call.as_text()}

    def is_reply(self, event: EmbeddingReply) -> bool:
        return event.data is not None or event.error is not None

    def new_reply(self) -> VectorReply:
        return VectorReply()

    def plain_summary(self, event: EmbeddingReply) -> ReplySummary | None:
        return None


class VectorReply:
    """Collects the one event that a whole reply is."""

    def __init__(self) -> None:
        self._usage: Usage | None = None
        self._error: str | None = None

    def add(self, events: list[EmbeddingReply]) -> tuple[int, bool]:
        for event in events:
            self._usage = event.usage
            if event.error is not None:
                self._error = error_message(event.error) or "unnamed error"
            elif not event.data:
                self._error = "the reply holds no embedding"
        return 0, False

    def summary(self) -> ReplySummary:
        return ReplySummary(usage=self._usage, error=self._error)

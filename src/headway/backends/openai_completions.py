"""`/completions`: plain text in, plain text out."""

from __future__ import annotations

from typing import Any

from headway.backends.backend import Call, Message
from headway.backends.dialect import ReplySummary
from headway.backends.failures import error_message
from headway.backends.openai_events import CompletionEvent, Usage
from headway.backends.runs import Run
from headway.backends.stream import EventDecoder


class CompletionsDialect:
    """Renders a conversation as its texts, one after another."""

    path = "/completions"
    output_tokens_field = "max_tokens"
    can_stream = True
    can_include_usage = True

    def __init__(self) -> None:
        self.decoder = EventDecoder(CompletionEvent, b'"text":"', _plain_text)

    def question(self, call: Call, history: tuple[Message, ...]) -> dict[str, Any]:
        if not history:
            return {"prompt": call.as_text()}
        texts = [message.as_text() for message in history]
        return {"prompt": "\n".join([*texts, call.as_text()])}

    def is_reply(self, event: CompletionEvent) -> bool:
        return bool(event.choices) or event.error is not None

    def new_reply(self) -> CompletionReply:
        return CompletionReply()

    def plain_summary(self, event: CompletionEvent) -> ReplySummary | None:
        return None


def _plain_text(event: CompletionEvent) -> str | None:
    """The text of an event that carries nothing else."""
    if event.usage is not None or event.error is not None or not event.choices:
        return None
    choice = event.choices[0]
    if len(event.choices) > 1 or choice.index or choice.finish_reason:
        return None
    return choice.text


class CompletionReply:
    """Collects a completion, streamed or whole."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._error: str | None = None

    def add(self, events: list[CompletionEvent | Run]) -> tuple[int, bool]:
        carrying = 0
        for event in events:
            if isinstance(event, Run):
                self._texts.append(event.text)
                carrying += event.carrying
                continue
            carried = False
            for choice in event.choices or ():
                if choice.text:
                    carried = True
                    if choice.index == 0:
                        self._texts.append(choice.text)
                if choice.finish_reason is not None:
                    self._finish_reason = choice.finish_reason
            carrying += carried
            if event.usage is not None:
                self._usage = event.usage
            if event.error is not None:
                self._error = error_message(event.error) or "unnamed error"
        return carrying, carrying > 0

    def summary(self) -> ReplySummary:
        text = "".join(self._texts)
        return ReplySummary(
            text=text,
            message=Message("assistant", text),
            usage=self._usage,
            finish_reason=self._finish_reason,
            error=self._error,
        )

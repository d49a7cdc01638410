"""`/responses`: typed items in, typed events out."""

from __future__ import annotations

from typing import Any

from headway.backends.backend import Call, Message
from headway.backends.dialect import ReplySummary
from headway.backends.failures import error_message
from headway.backends.openai_chat import as_field
from headway.backends.openai_events import ResponseBody, ResponseEvent, Usage
from headway.backends.stream import EventDecoder

_CONTENT = "response.output_text.delta"
# Every other channel on which a model generates; all carry their text in `delta`.
_OTHER_CHANNELS = frozenset(
    {
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.refusal.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
    }
)
_ITEMS = "output_items"


class ResponsesDialect:
    """Renders calls as input items, and reads events told apart by their `type` back."""

    path = "/responses"
    output_tokens_field = "max_output_tokens"
    can_stream = True
    can_include_usage = False  # it always is

    def __init__(self) -> None:
        self.decoder = EventDecoder(ResponseEvent)

    def question(self, call: Call, history: tuple[Message, ...]) -> dict[str, Any]:
        if call.prompt is not None and not call.messages and not history:
            return {"input": call.prompt}
        items: list[dict[str, Any]] = []
        for message in history + call.as_messages():
            given = (message.extra or {}).get(_ITEMS)
            items += given if given else [as_field(message)]
        return {"input": items}

    def is_reply(self, event: ResponseEvent) -> bool:
        return event.object == "response" or event.error is not None

    def new_reply(self) -> ResponsesReply:
        return ResponsesReply()

    def plain_summary(self, event: ResponseEvent) -> ReplySummary | None:
        return None


class ResponsesReply:
    """Collects a response, streamed or whole."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._items: list[dict[str, Any]] = []
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._error: str | None = None

    def add(self, events: list[ResponseEvent]) -> tuple[int, bool]:
        carrying = 0
        has_content = False
        for event in events:
            if event.delta:
                if event.type == _CONTENT:
                    self._texts.append(str(event.delta))
                    carrying += 1
                    has_content = True
                elif event.type in _OTHER_CHANNELS:
                    self._note_other(event)
                    carrying += 1
            elif event.response is not None:
                self._end(event.response)
            elif event.object == "response":
                # Not an event: a whole response, because streaming was not asked for.
                self._end(event.as_response())
                self._texts.append(_output_text(self._items))
            elif event.type == "error" or event.error is not None:
                self._error = event.message or error_message(event.error) or "unnamed error"
        return carrying, has_content

    def summary(self) -> ReplySummary:
        text = "".join(self._texts)
        calls_tools = any(item.get("type") == "function_call" for item in self._items)
        return ReplySummary(
            text=text or "".join(self._reasoning),
            # A tool call is an item of its own beside the text, and its answer refers to it.
            message=Message("assistant", text, {_ITEMS: self._items} if calls_tools else None),
            usage=self._usage,
            finish_reason=self._finish_reason,
            error=self._error,
        )

    def _note_other(self, event: ResponseEvent) -> None:
        if "reasoning" in event.type:
            self._reasoning.append(str(event.delta))

    def _end(self, response: ResponseBody) -> None:
        if response.output:
            self._items = response.output
        if response.usage is not None:
            self._usage = response.usage
        if response.status in ("completed", "incomplete"):
            reason = (response.incomplete_details or {}).get("reason")
            self._finish_reason = str(reason or "stop")
        if response.error is not None or response.status == "failed":
            self._error = error_message(response.error) or "the response failed"


def _output_text(items: list[dict[str, Any]]) -> str:
    texts = [
        str(part.get("text", ""))
        for item in items
        if item.get("type") == "message"
        for part in item.get("content", ())
        if part.get("type") == "output_text"
    ]
    return "".join(texts)

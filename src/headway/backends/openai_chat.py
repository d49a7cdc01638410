"""`/chat/completions`: how it is asked and what its replies say."""

from __future__ import annotations

from typing import Any

from headway.backends.backend import Call, Message
from headway.backends.dialect import ReplySummary
from headway.backends.failures import error_message
from headway.backends.openai_events import ChatChoice, ChatDelta, ChatEvent, ToolCallDelta, Usage
from headway.backends.runs import Run
from headway.backends.stream import EventDecoder


class ChatDialect:
    """Renders calls as messages, and reads content, reasoning and tool calls back."""

    path = "/chat/completions"
    output_tokens_field = "max_tokens"
    can_stream = True
    can_include_usage = True

    def __init__(self) -> None:
        self.decoder = EventDecoder(ChatEvent, b'"content":"', _plain_text)

    def question(self, call: Call, history: tuple[Message, ...]) -> dict[str, Any]:
        messages = history + call.as_messages() if history else call.as_messages()
        return {"messages": [as_field(message) for message in messages]}

    def is_reply(self, event: ChatEvent) -> bool:
        return bool(event.choices) or event.error is not None

    def new_reply(self) -> ChatReply:
        return ChatReply()

    def plain_summary(self, event: ChatEvent) -> ReplySummary | None:
        choices = event.choices
        if event.error is not None or not choices or len(choices) > 1:
            return None
        choice = choices[0]
        message = choice.message
        if message is None or choice.delta is not None or choice.index:
            return None
        text = message.content
        if not isinstance(text, str) or _uses_other_channels(message):
            return None
        return ReplySummary(
            text=text,
            message=Message("assistant", text),
            usage=event.usage,
            finish_reason=choice.finish_reason,
        )


def as_field(message: Message) -> dict[str, Any]:
    """A message as the API takes it."""
    if message.extra:
        return {"role": message.role, "content": message.content, **message.extra}
    return {"role": message.role, "content": message.content}


class ChatReply:
    """Collects a chat reply, streamed or whole."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._tool_calls: dict[int, dict[str, Any]] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._error: str | None = None

    def add(self, events: list[ChatEvent | Run]) -> tuple[int, bool]:
        carrying = 0
        has_content = False
        for event in events:
            if isinstance(event, Run):
                self._content.append(event.text)
                carrying += event.carrying
                has_content = has_content or event.carrying > 0
                continue
            carried = False
            for choice in event.choices or ():
                delta = choice.delta or choice.message
                if delta is not None:
                    if content := delta.content:
                        carried = has_content = True
                        if choice.index == 0:
                            self._content.append(_plain(content))
                    if _uses_other_channels(delta) and self._add_other_channels(delta, choice):
                        carried = True
                if choice.finish_reason is not None:
                    self._finish_reason = choice.finish_reason
            carrying += carried
            if event.usage is not None:
                self._usage = event.usage
            if event.error is not None:
                self._error = error_message(event.error) or "unnamed error"
        return carrying, has_content

    def summary(self) -> ReplySummary:
        content = "".join(self._content)
        return ReplySummary(
            text=content or "".join(self._reasoning),
            # Reasoning is not sent back: chat templates drop it, and strict servers refuse it.
            message=Message("assistant", content, self._extra()),
            usage=self._usage,
            finish_reason=self._finish_reason,
            error=self._error,
        )

    def _extra(self) -> dict[str, Any] | None:
        if not self._tool_calls:
            return None
        return {"tool_calls": [self._tool_calls[index] for index in sorted(self._tool_calls)]}

    def _add_other_channels(self, delta: ChatDelta, choice: ChatChoice) -> bool:
        reasoning = delta.reasoning_content or delta.reasoning
        if reasoning and choice.index == 0:
            self._reasoning.append(reasoning)
        carried = bool(reasoning or delta.refusal)
        if delta.tool_calls:
            is_whole = choice.message is not None
            for position, piece in enumerate(delta.tool_calls):
                # Only streamed pieces say which call they belong to.
                index = position if is_whole else piece.index
                carried = self._add_tool_call(index, piece, choice.index) or carried
        return carried

    def _add_tool_call(self, index: int, piece: ToolCallDelta, choice_index: int) -> bool:
        function = piece.function
        name = function.name if function is not None else None
        arguments = function.arguments if function is not None else None
        if choice_index == 0:
            call = self._tool_calls.setdefault(
                index,
                {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
            )
            call["id"] = piece.id or call["id"]
            call["function"]["name"] += name or ""
            call["function"]["arguments"] += arguments or ""
        return bool(name or arguments)


def _uses_other_channels(delta: ChatDelta) -> bool:
    return bool(delta.reasoning_content or delta.reasoning or delta.refusal or delta.tool_calls)


def _plain_text(event: ChatEvent) -> str | None:
    """The text of an event that carries nothing else."""
    if event.usage is not None or event.error is not None or not event.choices:
        return None
    choice = event.choices[0]
    delta = choice.delta
    if len(event.choices) > 1 or choice.index or choice.finish_reason or delta is None:
        return None
    if _uses_other_channels(delta):
        return None
    return delta.content if isinstance(delta.content, str) else None


def _plain(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    return "".join([str(part.get("text", "")) for part in content if isinstance(part, dict)])

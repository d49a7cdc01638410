"""`/v1/chat/completions`."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.sim.completions import ERROR_EVENT, Envelope, usage_json
from headway.sim.dialect import Ask, cannot_read, encode
from headway.sim.messages import ChatMessage, Function, Refusal, StreamOptions
from headway.sim.reply import Piece, ReplyPlan, channel_text, pieces
from headway.sim.script import IDENT, Script, Usage, frame
from headway.sim.tokenizer import tokenize, tokenize_chat

CALL_ID = f"call_{IDENT.decode()}"


class _Tool(msgspec.Struct):
    function: Function
    type: str = "function"


class _ChosenFunction(msgspec.Struct):
    name: str


class _ToolChoice(msgspec.Struct):
    function: _ChosenFunction


class _Body(msgspec.Struct):
    messages: list[ChatMessage]
    model: str | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    tools: list[_Tool] | None = None
    tool_choice: str | _ToolChoice | None = None
    n: int | None = 1
    ignore_eos: bool = False
    reasoning_effort: str | None = None


class ChatDialect:
    """Chat completions as OpenAI and vLLM speak them.

    Args:
        created: The Unix time that replies carry.
        reasoning_field: The field of a message that holds its reasoning.
    """

    def __init__(self, created: int, reasoning_field: str) -> None:
        self._created = created
        self._reasoning_field = reasoning_field
        self._decoder = msgspec.json.Decoder(_Body)

    def parse(self, body: bytes) -> Ask | Refusal:
        try:
            fields = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            return cannot_read(error)
        if not fields.messages:
            return Refusal(400, "'messages' is empty; give at least one.", param="messages")
        if fields.n not in (None, 1):
            return Refusal(400, "The simulated server makes one choice; leave 'n' at 1.", param="n")
        tool = _chosen_tool(fields) if fields.tools else None
        if isinstance(tool, Refusal):
            return tool
        prompt = tokenize_chat(fields.messages)
        for offered in fields.tools or ():
            prompt += tokenize(encode(offered.function))
        asked = fields.max_completion_tokens
        return Ask(
            model=fields.model,
            prompt=prompt,
            max_tokens=fields.max_tokens if asked is None else asked,
            stream=bool(fields.stream),
            include_usage=bool(fields.stream_options and fields.stream_options.include_usage),
            tool=tool,
            ignore_eos=fields.ignore_eos,
            reasoning=fields.reasoning_effort != "none",
        )

    def script(self, plan: ReplyPlan) -> Script:
        envelope = self._envelope("chat.completion.chunk", plan)
        role = envelope.event(_chunk('"role":"assistant","content":""', None))
        frames = [
            frame(envelope.event(_chunk(self._delta(part, plan), None)), plan.chunked)
            if part
            else b""
            for part in pieces(plan)
        ]
        finish = _chunk("", plan.finish_reason)
        return envelope.script(plan, frames, finish, frame(role, plan.chunked))

    def whole(self, plan: ReplyPlan) -> tuple[bytes, bytes]:
        parts = pieces(plan)
        message: dict[str, Any] = {"role": "assistant", "content": channel_text(parts, "content")}
        if plan.reasoning_tokens:
            message[self._reasoning_field] = channel_text(parts, "reasoning")
        if plan.tool:
            arguments = channel_text(parts, "tool")
            function = {"name": plan.tool.name, "arguments": arguments}
            message["content"] = None
            message["tool_calls"] = [{"id": CALL_ID, "type": "function", "function": function}]
        choice = (
            f'{{"index":0,"message":{encode(message)},"logprobs":null,'
            f'"finish_reason":"{plan.finish_reason}"}}'
        )
        return self._envelope("chat.completion", plan).whole(choice)

    def usage(self, usage: Usage) -> bytes:
        return usage_json(usage)

    def error_event(self) -> bytes:
        return ERROR_EVENT

    def _envelope(self, kind: str, plan: ReplyPlan) -> Envelope:
        return Envelope("chatcmpl-", kind, self._created, plan.model)

    def _delta(self, part: Piece, plan: ReplyPlan) -> str:
        if part.channel == "content":
            return f'"content":{encode(part.text)}'
        if part.channel == "reasoning":
            return f'"{self._reasoning_field}":{encode(part.text)}'
        assert plan.tool is not None
        if part.first:
            return (
                f'"tool_calls":[{{"index":0,"id":"{CALL_ID}","type":"function","function":'
                f'{{"name":{encode(plan.tool.name)},"arguments":{encode(part.text)}}}}}]'
            )
        return f'"tool_calls":[{{"index":0,"function":{{"arguments":{encode(part.text)}}}}}]'


def _chunk(delta: str, finish_reason: str | None) -> str:
    return (
        f'{{"index":0,"delta":{{{delta}}},"logprobs":null,"finish_reason":{encode(finish_reason)}}}'
    )


def _chosen_tool(body: _Body) -> Function | Refusal | None:
    assert body.tools
    if body.tool_choice == "none":
        return None
    if isinstance(body.tool_choice, _ToolChoice):
        name = body.tool_choice.function.name
        for tool in body.tools:
            if tool.function.name == name:
                return tool.function
        return Refusal(400, f"'tool_choice' names {name!r}, which is not among 'tools'.")
    # A model that has a tool's result answers; otherwise every agent loop would run for ever.
    if body.messages[-1].role == "tool" and body.tool_choice != "required":
        return None
    return body.tools[0].function

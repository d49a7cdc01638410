"""`/v1/responses`: typed events, each numbered, that repeat the whole text at their end."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.sim.dialect import Ask, cannot_read, encode
from headway.sim.messages import ChatMessage, ContentPart, Function, Refusal
from headway.sim.reply import Piece, ReplyPlan, pieces
from headway.sim.script import IDENT, Script, Usage, frame
from headway.sim.tokenizer import tokenize, tokenize_chat

_IDENT = IDENT.decode()


class _Item(msgspec.Struct):
    type: str = "message"
    role: str = "user"
    content: str | list[ContentPart] | None = None
    output: str | list[ContentPart] | None = None
    arguments: str | None = None


class _Tool(msgspec.Struct):
    type: str
    name: str = ""
    parameters: dict[str, Any] | None = None


class _ToolChoice(msgspec.Struct):
    name: str = ""


class _Reasoning(msgspec.Struct):
    effort: str | None = None


class _Body(msgspec.Struct):
    input: str | list[_Item]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    stream: bool | None = False
    tools: list[_Tool] | None = None
    tool_choice: str | _ToolChoice | None = None
    reasoning: _Reasoning | None = None
    previous_response_id: str | None = None
    ignore_eos: bool = False


class ResponsesDialect:
    """The Responses API.

    Args:
        created: The Unix time that replies carry.
    """

    def __init__(self, created: int) -> None:
        self._created = created
        self._decoder = msgspec.json.Decoder(_Body)

    def parse(self, body: bytes) -> Ask | Refusal:
        try:
            fields = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            return cannot_read(error)
        if fields.previous_response_id is not None:
            return Refusal(
                400,
                "The simulated server keeps no responses; send the history in 'input'.",
                param="previous_response_id",
            )
        prompt = tokenize_chat(_messages(fields))
        for tool in fields.tools or ():
            prompt += tokenize(encode(tool))
        return Ask(
            model=fields.model,
            prompt=prompt,
            max_tokens=fields.max_output_tokens,
            stream=bool(fields.stream),
            include_usage=True,
            tool=_chosen_tool(fields),
            ignore_eos=fields.ignore_eos,
            reasoning=not (fields.reasoning and fields.reasoning.effort == "none"),
        )

    def script(self, plan: ReplyPlan) -> Script:
        events = _Events(plan.chunked)
        opened = self._response(plan, "in_progress", [])
        response = f'"response":{opened}null}}'
        opening = events.add("response.created", response)
        opening += events.add("response.in_progress", response)
        frames: list[bytes] = []
        items = _items(plan)
        for index, item in enumerate(items):
            frames += item.frames(index, events)
        kind = f"response.{_status(plan)}"
        before, after = events.around(kind, self._response(plan, _status(plan), items))
        return Script(
            opening=opening,
            frames=tuple(frames),
            finish=b"",
            usage_before=before,
            usage_after=after,
            usage_required=True,
            end=b"",
            chunked=plan.chunked,
        )

    def whole(self, plan: ReplyPlan) -> tuple[bytes, bytes]:
        return self._response(plan, _status(plan), _items(plan)).encode(), b"}"

    def usage(self, usage: Usage) -> bytes:
        prompt, cached, output, reasoning = usage
        return (
            b'{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,'
            b'"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}'
        ) % (prompt, cached, output, reasoning, prompt + output)

    def error_event(self) -> bytes:
        return (
            b'event: error\ndata: {"type":"error","code":"server_error",'
            b'"message":"The simulated engine failed.","param":null,"sequence_number":0}\n\n'
        )

    def _response(self, plan: ReplyPlan, status: str, items: list[_OutputItem]) -> str:
        """The response object up to its usage, which the caller puts in with a brace."""
        reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
        fields = {
            "id": f"resp_{_IDENT}",
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": plan.model,
            "output": [item.closed() for item in items],
            "error": None,
            "incomplete_details": reason,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "top_p": 1.0,
            "tool_choice": "auto",
            "tools": [],
        }
        return f'{encode(fields)[:-1]},"usage":'


class _Events:
    """Numbers and frames events."""

    def __init__(self, chunked: bool) -> None:
        self._chunked = chunked
        self._number = 0

    def add(self, kind: str, fields: str) -> bytes:
        """One event; `fields` is the inside of a JSON object."""
        return frame(f"{self._start(kind)},{fields}}}\n\n".encode(), self._chunked)

    def around(self, kind: str, response: str) -> tuple[bytes, bytes]:
        """An event around its response's usage, unframed."""
        return f'{self._start(kind)},"response":{response}'.encode(), b"}}\n\n"

    def _start(self, kind: str) -> str:
        number, self._number = self._number, self._number + 1
        return f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":{number}'


class _OutputItem:
    """One item of a response's output. Subclasses name its events.

    Args:
        parts: What goes out with each token.
    """

    delta_event: str
    done_event: str

    def __init__(self, parts: list[Piece | None]) -> None:
        self._parts = parts
        self.text = "".join([part.text for part in parts if part is not None])

    def opened(self) -> dict[str, Any]:
        """The item before its first token."""
        raise NotImplementedError

    def closed(self) -> dict[str, Any]:
        """The item when it is whole."""
        raise NotImplementedError

    def frames(self, index: int, events: _Events) -> list[bytes]:
        """One entry a token; what opens and closes the item goes with the first and the last."""
        where = f'"output_index":{index}'
        inside = self._inside(where)
        frames: list[bytes] = []
        for part in self._parts:
            data = self._opening(where, inside, events) if not frames else b""
            if part is not None and part.text:
                data += events.add(self.delta_event, f'{inside},"delta":{encode(part.text)}')
            frames.append(data)
        frames[-1] += self._closing(where, inside, events)
        return frames

    def _inside(self, where: str) -> str:
        return f'{where},"content_index":0,"item_id":{encode(self.opened()["id"])}'

    def _opening(self, where: str, inside: str, events: _Events) -> bytes:
        return events.add("response.output_item.added", f'{where},"item":{encode(self.opened())}')

    def _closing(self, where: str, inside: str, events: _Events) -> bytes:
        return events.add(self.done_event, self._done_fields(inside)) + events.add(
            "response.output_item.done", f'{where},"item":{encode(self.closed())}'
        )

    def _done_fields(self, inside: str) -> str:
        return f'{inside},"text":{encode(self.text)}'


class _ReasoningItem(_OutputItem):
    delta_event = "response.reasoning_text.delta"
    done_event = "response.reasoning_text.done"

    def opened(self) -> dict[str, Any]:
        return {"id": f"rs_{_IDENT}", "type": "reasoning", "summary": []}

    def closed(self) -> dict[str, Any]:
        return {**self.opened(), "content": [{"type": "reasoning_text", "text": self.text}]}


class _MessageItem(_OutputItem):
    delta_event = "response.output_text.delta"
    done_event = "response.output_text.done"

    def opened(self) -> dict[str, Any]:
        return self._item("in_progress", [])

    def closed(self) -> dict[str, Any]:
        return self._item("completed", [self._part(self.text)])

    def _item(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"msg_{_IDENT}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def _part(self, text: str) -> dict[str, Any]:
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _opening(self, where: str, inside: str, events: _Events) -> bytes:
        part = f'{inside},"part":{encode(self._part(""))}'
        opening = super()._opening(where, inside, events)
        return opening + events.add("response.content_part.added", part)

    def _closing(self, where: str, inside: str, events: _Events) -> bytes:
        done = events.add(self.done_event, self._done_fields(inside))
        part = f'{inside},"part":{encode(self._part(self.text))}'
        done += events.add("response.content_part.done", part)
        item = f'{where},"item":{encode(self.closed())}'
        return done + events.add("response.output_item.done", item)

    def _done_fields(self, inside: str) -> str:
        return f'{super()._done_fields(inside)},"logprobs":[]'


class _FunctionItem(_OutputItem):
    delta_event = "response.function_call_arguments.delta"
    done_event = "response.function_call_arguments.done"

    def __init__(self, name: str, parts: list[Piece | None]) -> None:
        super().__init__(parts)
        self._name = name

    def opened(self) -> dict[str, Any]:
        return self._item("in_progress", "")

    def closed(self) -> dict[str, Any]:
        return self._item("completed", self.text)

    def _item(self, status: str, arguments: str) -> dict[str, Any]:
        return {
            "id": f"fc_{_IDENT}",
            "type": "function_call",
            "status": status,
            "call_id": f"call_{_IDENT}",
            "name": self._name,
            "arguments": arguments,
        }

    def _inside(self, where: str) -> str:
        return f'{where},"item_id":{encode(self.opened()["id"])}'

    def _done_fields(self, inside: str) -> str:
        return f'{inside},"name":{encode(self._name)},"arguments":{encode(self.text)}'


def _items(plan: ReplyPlan) -> list[_OutputItem]:
    parts = pieces(plan)
    reasoning, visible = parts[: plan.reasoning_tokens], parts[plan.reasoning_tokens :]
    items: list[_OutputItem] = [_ReasoningItem(reasoning)] if reasoning else []
    if visible:
        items.append(_FunctionItem(plan.tool.name, visible) if plan.tool else _MessageItem(visible))
    return items


def _status(plan: ReplyPlan) -> str:
    return "incomplete" if plan.finish_reason == "length" else "completed"


def _messages(body: _Body) -> list[ChatMessage]:
    messages = [ChatMessage("system", body.instructions)] if body.instructions else []
    if isinstance(body.input, str):
        return [*messages, ChatMessage("user", body.input)]
    for item in body.input:
        role = "tool" if item.type == "function_call_output" else item.role
        content = item.output if item.content is None else item.content
        messages.append(ChatMessage(role, item.arguments if content is None else content))
    return messages


def _chosen_tool(body: _Body) -> Function | None:
    functions = [tool for tool in body.tools or () if tool.type == "function"]
    if isinstance(body.tool_choice, _ToolChoice):
        functions = [tool for tool in functions if tool.name == body.tool_choice.name]
    elif body.tool_choice == "none":
        return None
    # As in a chat: a model that has a tool's result answers.
    answered = not isinstance(body.input, str) and body.input[-1:] != []
    if answered and body.input[-1].type == "function_call_output":  # type: ignore[union-attr]
        return None
    return Function(functions[0].name, functions[0].parameters) if functions else None

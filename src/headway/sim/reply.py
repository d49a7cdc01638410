"""What a simulated reply consists of: words that count as one token each, in channels."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from headway.sim.messages import Function

Channel = Literal["reasoning", "content", "tool"]
FinishReason = Literal["stop", "length", "tool_calls"]

# Each is one token of the simulated tokenizer, so that a reply counts the same when it comes back
# as history.
_SENTENCE = (
    "the train leaves on time and every signal along this line shows clear so we keep our distance "
    "from what runs ahead while those who follow do the same until all have passed"
)
WORDS = tuple(_SENTENCE.split())


class ToolReply(NamedTuple):
    """A call of one function: its name and its arguments, cut where words are put in."""

    name: str
    before: str
    after: str


class ReplyPlan(NamedTuple):
    """The shape of a reply. Replies of one shape differ by identifier and usage only."""

    model: str
    reasoning_tokens: int
    output_tokens: int
    """All of them, those of reasoning included."""
    tool: ToolReply | None
    finish_reason: FinishReason
    tokens_per_chunk: int = 1
    role_first: bool = False
    chunked: bool = True
    """Whether events are framed as HTTP chunks (not for HTTP/1.0)."""
    payload: bytes = b""
    """What the dialect made of the request itself."""


class Piece(NamedTuple):
    """What goes out in one event."""

    channel: Channel
    text: str
    first: bool
    """Whether it opens its channel."""


def pieces(plan: ReplyPlan) -> list[Piece | None]:
    """One entry for each token: what goes out with it, or None where a later token takes it along.

    The first piece of a tool reply is empty: it carries the function's name.
    """
    visible: Channel = "tool" if plan.tool else "content"
    visible_tokens = plan.output_tokens - plan.reasoning_tokens
    texts = _tool_texts(plan.tool, visible_tokens) if plan.tool else word_texts(visible_tokens)
    return [
        *_grouped("reasoning", word_texts(plan.reasoning_tokens), plan.tokens_per_chunk),
        *_grouped(visible, texts, plan.tokens_per_chunk),
    ]


def channel_text(parts: list[Piece | None], channel: Channel) -> str:
    """All that a reply says in one channel."""
    return "".join([part.text for part in parts if part is not None and part.channel == channel])


def word_texts(count: int) -> list[str]:
    """`count` tokens of text, which join to plain words."""
    words = len(WORDS)
    return [(" " if k else "") + WORDS[k % words] for k in range(count)]


def tool_reply(function: Function) -> ToolReply:
    """Arguments that fit the function's properties; the first text one, if any, takes the words."""
    parameters = function.parameters or {}
    properties: dict[str, Any] = parameters.get("properties") or {}
    names = parameters.get("required") or list(properties)[:1]
    text_name = next((n for n in names if _type_of(properties.get(n)) == "string"), None)
    fixed = {n: _sample(properties.get(n)) for n in names if n != text_name}
    encoded = msgspec.json.encode(fixed).decode()
    if text_name is None:
        return ToolReply(function.name, encoded, "")
    comma = "," if fixed else ""
    key = msgspec.json.encode(text_name).decode()
    return ToolReply(function.name, f'{encoded[:-1]}{comma}{key}:"', '"}')


def _tool_texts(tool: ToolReply, count: int) -> list[str]:
    # Without a text property only white space may follow: it keeps the arguments valid JSON.
    fill = word_texts(count - 1) if tool.after else ["", *[" "] * max(0, count - 2)]
    texts = ["", *fill[: max(0, count - 1)]]
    if count > 1:
        texts[1] = tool.before + texts[1]
        texts[-1] += tool.after
    return texts


def _grouped(channel: Channel, texts: list[str], size: int) -> list[Piece | None]:
    if size == 1:
        return [Piece(channel, text, k == 0) for k, text in enumerate(texts)]
    out: list[Piece | None] = [None] * len(texts)
    for start in range(0, len(texts), size):
        group = texts[start : start + size]
        out[start + len(group) - 1] = Piece(channel, "".join(group), start == 0)
    return out


def _type_of(schema: Any) -> str:
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    return kind if isinstance(kind, str) else "string"


def _sample(schema: Any) -> Any:
    if isinstance(schema, dict) and schema.get("enum"):
        return schema["enum"][0]
    samples: dict[str, Any] = {
        "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None,
    }  # fmt: skip
    return samples.get(_type_of(schema), WORDS[0])

"""The simulated model's tokenizer and chat template.

A token is a run of at most eight word characters, or one punctuation mark; white space separates
and costs nothing. A chat adds four tokens for each message (start, role, separator, end) and three
that open the reply (start, role, separator), so a client that calibrates its prompt length by
`usage` has a real overhead to find.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence

from headway.sim.messages import ChatMessage, ContentPart

VOCABULARY_SIZE = 100_000
MEDIA_PART_TOKENS = 256
"""What a content part that is no text (an image, audio) costs."""

_TOKEN = re.compile(r"\w{1,8}|[^\w\s]")
_START, _SEPARATOR, _END = "<|start|>", "<|sep|>", "<|end|>"


def tokenize(text: str) -> list[str]:
    """The tokens of `text`, as strings."""
    return _TOKEN.findall(text)


def token_ids(tokens: Iterable[str]) -> list[int]:
    """Stable numbers for tokens; different tokens may share one."""
    return [zlib.crc32(token.encode()) % VOCABULARY_SIZE for token in tokens]


def tokenize_chat(messages: Iterable[ChatMessage], open_reply: bool = True) -> list[str]:
    """The tokens of a conversation rendered through the chat template.

    Args:
        messages: The conversation.
        open_reply: Append the three tokens after which the model's reply begins.
    """
    tokens: list[str] = []
    for message in messages:
        tokens += (_START, message.role, _SEPARATOR)
        if isinstance(message.content, str):
            tokens += _TOKEN.findall(message.content)
        elif message.content is not None:
            _append_parts(tokens, message.content)
        if message.tool_calls:
            for call in message.tool_calls:
                tokens += tokenize(f"{call.function.name} {call.function.arguments}")
        tokens.append(_END)
    if open_reply:
        tokens += (_START, "assistant", _SEPARATOR)
    return tokens


def _append_parts(tokens: list[str], parts: Sequence[ContentPart]) -> None:
    for part in parts:
        if part.text is None:
            tokens += [f"<|{part.type}|>"] * MEDIA_PART_TOKENS
        else:
            tokens += _TOKEN.findall(part.text)

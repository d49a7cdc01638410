"""A reply as bytes, rendered once for each shape and reused for every request of that shape."""

from __future__ import annotations

from typing import NamedTuple

IDENT = b"@identifier-of-24-bytes@"
"""Stands for the reply's identifier in rendered bytes; as long as what replaces it, so that chunk
lengths stay right."""


class Usage(NamedTuple):
    """Token counts of one request."""

    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int


class Script(NamedTuple):
    """The events of a streamed reply."""

    opening: bytes
    """What goes out before the first token is there."""
    frames: tuple[bytes, ...]
    """What goes out with each token; may be empty."""
    finish: bytes
    """What follows the last token."""
    usage_before: bytes
    usage_after: bytes
    usage_required: bool
    """Whether the event that carries usage ends every stream, or only those that asked."""
    end: bytes
    """The last event, if the protocol has one."""
    chunked: bool

    def closing(self, usage: bytes | None, end: bool = True) -> bytes:
        """Everything after the last token.

        Args:
            usage: The usage as JSON; None leaves it out.
            end: Whether the protocol's last event is sent.
        """
        parts = [self.finish]
        if usage is not None or self.usage_required:
            event = self.usage_before + (usage or b"null") + self.usage_after
            parts.append(frame(event, self.chunked))
        if end:
            parts.append(self.end)
        if self.chunked:
            parts.append(b"0\r\n\r\n")
        return b"".join(parts)


def frame(payload: bytes, chunked: bool) -> bytes:
    """`payload` as one HTTP chunk, or as it is for HTTP/1.0."""
    if not chunked or not payload:
        return payload
    return b"%x\r\n%b\r\n" % (len(payload), payload)

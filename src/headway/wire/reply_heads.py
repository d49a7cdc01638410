"""Heads of replies that the parser has understood, by their bytes.

Replies of one server mostly begin with the same bytes. How a reply goes on is decided by its head
alone, so a head equal byte for byte to one that was parsed, with as many bytes behind it, is the
same reply around another body: no parser need look at it again.
"""

from __future__ import annotations

import msgspec

_MAX_KNOWN = 64
_PATIENCE = 256
"""Heads learned without one being of use; a server that numbers its replies never repeats one."""

HEAD_END = b"\r\n\r\n"


class ReplyHead(msgspec.Struct, frozen=True):
    """What the parser made of a head."""

    status: int
    fields: dict[bytes, bytes]
    """Shared by all replies that have it: nobody changes it."""
    length: int
    """Bytes of the body."""


class ReplyHeads:
    """What one transport's connections have seen, bounded."""

    def __init__(self) -> None:
        self.known: dict[bytes, ReplyHead] = {}
        """By the head's bytes, the blank line included. Whoever finds one calls `found`."""
        self._patience = _PATIENCE

    @property
    def is_learning(self) -> bool:
        """Whether there is any use in telling it of one more reply."""
        return self._patience > 0

    def learn(self, data: bytes, status: int, fields: dict[bytes, bytes], body: bytes) -> None:
        """A reply that came in one read, was whole, plain, and left its connection usable.

        Args:
            data: The read.
            status: Of the reply.
            fields: Its header fields.
            body: What the parser found in it.
        """
        end = data.find(HEAD_END) + len(HEAD_END)
        # Told apart by bytes from every other framing: with chunks or a trailer something else
        # than the body itself would stand behind the head.
        if data[end:] != body:
            return
        self._patience -= 1
        if len(self.known) >= _MAX_KNOWN:
            self.known.clear()
        self.known[data[:end]] = ReplyHead(status, fields, len(body))

    def found(self) -> None:
        """One was of use."""
        self._patience = _PATIENCE

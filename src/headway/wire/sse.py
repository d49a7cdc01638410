"""Server-sent events (WHATWG HTML, section 9.2.6): bytes in, each event's data out.

Two ways lead to the same events. `SseSplitter` understands all of the format and works as reads
come in. `as_json_array` handles, in three passes of C code over a whole reply, the one shape that
nearly every inference server writes: `data: {...}` and a blank line, again and again.
"""

from __future__ import annotations

import re

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_EVENT = b"data: "
_END = b"\n\n"
_NEXT = _END + _EVENT
_DONE_AFTER = _NEXT + b"[DONE]"


class SseSplitter:
    """Splits a stream that arrives in arbitrary pieces into the data of its events.

    Comments, ids, retry times and event names are skipped; several data lines of an event are
    joined by a line feed; an event without data is none.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._is_at_start = True

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of every event that `piece` completes, in order."""
        if self._is_at_start:
            piece = self._without_bom(piece)
        text = self._rest + piece if self._rest else piece
        # A carriage return at the end may be half of a line end: wait for what follows it.
        held = text.endswith(b"\r")
        lines = _LINE_END.split(text[:-1] if held else text)
        self._rest = lines.pop() + (b"\r" if held else b"")
        return self._take(lines)

    def finish(self) -> list[bytes]:
        """The stream is over: what it left without a blank line counts as an event too.

        The standard drops it, yet servers forget the last blank line, and the tokens are there.
        """
        rest, self._rest = self._rest, b""
        lines = _LINE_END.split(rest)
        return self._take([*lines, b""])

    def _take(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(_EVENT):
                data.append(line[6:])
            elif not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.startswith(b"data"):
                if line == b"data":
                    data.append(b"")
                elif line[4:5] == b":":
                    data.append(line[5:])
        return events

    def _without_bom(self, piece: bytes) -> bytes:
        text = self._rest + piece
        self._rest = b""
        if len(text) < len(_BOM) and _BOM.startswith(text):
            self._rest = text
            return b""
        self._is_at_start = False
        return text.removeprefix(_BOM)


def split_reads(reads: list[tuple[int, bytes]], is_whole: bool) -> list[tuple[int, list[bytes]]]:
    """The events that each read completed.

    Args:
        reads: (time, bytes) in order.
        is_whole: The stream came to its end, so that a rest without a blank line is an event.

    Returns:
        (time of the read, data of its events), without the reads that completed none.
    """
    splitter = SseSplitter()
    groups: list[tuple[int, list[bytes]]] = []
    for time_ns, piece in reads:
        events = splitter.feed(piece)
        if events:
            groups.append((time_ns, events))
    if is_whole and reads and (rest := splitter.finish()):
        add_to_last_read(groups, reads[-1][0], rest)
    return groups


def add_to_last_read(
    groups: list[tuple[int, list[bytes]]], time_ns: int, rest: list[bytes]
) -> None:
    """What only the stream's end completed came in its last read, and is no read of its own."""
    if groups and groups[-1][0] == time_ns:
        groups[-1][1].extend(rest)
    else:
        groups.append((time_ns, rest))


def split_blocks(reads: list[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], bytes]:
    """The bytes of whole events that each read completed, for streams that end events by two
    line feeds.

    Returns:
        (time, bytes) without the reads that completed nothing, and what is left of the last one.
    """
    blocks: list[tuple[int, bytes]] = []
    rest = b""
    for time_ns, piece in reads:
        whole, end, rest_of_piece = (rest + piece if rest else piece).rpartition(_END)
        if end:
            blocks.append((time_ns, whole))
        rest = rest_of_piece
    return blocks, rest


def as_json_array(block: bytes) -> tuple[bytes, int] | None:
    """Plain JSON events as one JSON array, so that one call decodes them all.

    Bulk operations instead of a loop: 0.05 µs an event against 0.6. It is right only when the
    array decodes to exactly the returned number of elements: anything else in the block
    (comments, CRLF, event names, a malformed event) makes it fail to, because none of it is JSON.

    Args:
        block: Events, without the blank line after the last one.

    Returns:
        The array and its number of elements, without a final `[DONE]`; None when the block has
        another shape.
    """
    if not block.startswith(_EVENT):
        return None
    events = block[len(_EVENT) :].removesuffix(_DONE_AFTER)
    array = events.replace(_NEXT, b",")
    count = 1 + (len(events) - len(array)) // (len(_NEXT) - 1)
    return b"[%b]" % array, count

"""From the reads of a streamed reply to its events, and from those to the times of its tokens.

All of this runs when the reply is over, so that no other stream waits for it (trap 43).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from headway.backends.backend import Progress
from headway.backends.runs import Run, RunPattern
from headway.wire.sse import SseSplitter, as_json_array, split_blocks, split_reads

E = TypeVar("E")

Groups = list[tuple[int, list[E]]]

_END = b"\n\n"
_EVENT = b"data: "
_DONE = b"data: [DONE]"
# Below some ten events decoding each costs less than looking for a run.
_LONG_BLOCK_BYTES = 2_000
# A role-only event, sometimes an empty one, then the first content.
_EVENTS_BEFORE_RUN = 3


class Reply(Protocol[E]):
    """Collects what a reply's events say; each protocol has its own."""

    def add(self, events: list[E]) -> tuple[int, bool]:
        """Take the events of one read.

        Returns:
            How many of them carried generated tokens on any channel, and whether one of those
            carried content.
        """
        ...


class EventDecoder(Generic[E]):
    """Decodes events of one type, in bulk where their shape allows it.

    Args:
        event_type: What an event's JSON is decoded into.
        run_key: What stands right before the text in content events, as in `"content":"`.
        plain_text: The text of an event that carries nothing but content; None for any other.
    """

    def __init__(
        self,
        event_type: type[E],
        run_key: bytes | None = None,
        plain_text: Callable[[E], str | None] | None = None,
    ) -> None:
        self._one = msgspec.json.Decoder(event_type)
        self._many: msgspec.json.Decoder[list[E]] = msgspec.json.Decoder(list[event_type])  # type: ignore[valid-type]  # a run-time type
        self._run_key = run_key
        self._plain_text = plain_text

    def decode(
        self, reads: list[tuple[int, bytes]], is_whole: bool
    ) -> tuple[Groups[E | Run], bool]:
        """The events that each read completed.

        Args:
            reads: (time, bytes) in order.
            is_whole: The stream came to its end.

        Returns:
            The groups up to the first malformed event, and whether there was one.
        """
        bulk = self._in_blocks(reads, is_whole)
        return (bulk, False) if bulk is not None else self._one_by_one(reads, is_whole)

    def decode_one(self, data: bytes) -> E | None:
        """One event; None when it is malformed."""
        try:
            return self._one.decode(data)
        except msgspec.DecodeError:
            return None

    def _in_blocks(self, reads: list[tuple[int, bytes]], is_whole: bool) -> Groups[E | Run] | None:
        blocks, rest = split_blocks(reads)
        if rest and is_whole:
            return None
        groups: Groups[E | Run] = []
        for time_ns, block in blocks:
            events = self._decode_block(block)
            if events is None:
                return None
            groups.append((time_ns, events))
        return groups

    def _decode_block(self, block: bytes) -> list[E | Run] | None:
        if _END not in block:
            # One event for each read is what a stream in real time is: the shortest way.
            if not block.startswith(_EVENT):
                return None
            event = self.decode_one(block[6:])
            return [event] if event is not None else [] if block == _DONE else None
        events: list[E | Run] = []
        if self._run_key is not None and len(block) > _LONG_BLOCK_BYTES:
            block = self._take_run(block, events)
            if not block:
                return events
        array = as_json_array(block)
        if array is None:
            return None
        try:
            decoded = self._many.decode(array[0])
        except msgspec.DecodeError:
            return None
        if len(decoded) != array[1]:
            return None
        return [*events, *decoded] if events else decoded  # type: ignore[return-value]  # list is invariant

    def _take_run(self, block: bytes, events: list[E | Run]) -> bytes:
        """Move the block's first events and the run after them to `events`; what is left."""
        left = block
        for _ in range(_EVENTS_BEFORE_RUN):
            first, end, rest = left.partition(_END)
            event = self.decode_one(first[6:]) if end and first.startswith(_EVENT) else None
            if event is None:
                break
            events.append(event)
            left = rest
            pattern = self._pattern(first[6:], event)
            if pattern is not None:
                run = pattern.take(left)
                if run is not None:
                    events.append(run[0])
                    return run[1]
        events.clear()
        return block

    def _pattern(self, data: bytes, event: E) -> RunPattern | None:
        assert self._run_key is not None
        assert self._plain_text is not None
        text = self._plain_text(event)
        return None if text is None else RunPattern.of(data, self._run_key, text)

    def _one_by_one(
        self, reads: list[tuple[int, bytes]], is_whole: bool
    ) -> tuple[Groups[E | Run], bool]:
        groups: Groups[E | Run] = []
        for time_ns, payloads in split_reads(reads, is_whole):
            events: list[E | Run] = []
            groups.append((time_ns, events))
            for data in payloads:
                if data.strip() == b"[DONE]":
                    return groups, False
                event = self.decode_one(data)
                if event is None:
                    return groups, True
                events.append(event)
        return groups, False


def measure(groups: Groups[E], reply: Reply[E], progress: Progress) -> None:
    """Put the times of a stream's tokens into `progress`.

    A read's tokens share its one timestamp, so gaps are between reads that carried any, and never
    a row of zeros inside one (trap 46). Role-only and usage-only events carry none (trap 45).
    """
    chunks = 0
    gaps_ns: list[int] = []
    last_ns: int | None = None
    for time_ns, events in groups:
        carrying, has_content = reply.add(events)
        if not carrying:
            continue
        chunks += carrying
        if last_ns is None:
            progress.first_token_ns = time_ns
        else:
            gaps_ns.append(time_ns - last_ns)
        last_ns = time_ns
        if has_content and progress.first_content_ns is None:
            progress.first_content_ns = time_ns
    progress.last_token_ns = last_ns
    progress.chunks = chunks
    progress.gaps_ns = gaps_ns


class FirstTokenWatch:
    """Tells live, read by read, whether a token has come; for the first-token deadline only.

    Args:
        carries_token: Whether the event with this data does.
    """

    def __init__(self, carries_token: Callable[[bytes], bool]) -> None:
        self._carries_token = carries_token
        self._splitter = SseSplitter()

    def __call__(self, time_ns: int, piece: bytes) -> bool:
        return any(self._carries_token(data) for data in self._splitter.feed(piece))

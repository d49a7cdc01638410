"""From the reads of a streamed reply to its events, and from those to the times of its tokens.

All of this runs when the reply is over, so that no other stream waits for it (trap 43).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import msgspec

from headway.backends.backend import Progress
from headway.backends.runs import Run, RunPattern
from headway.wire.sse import SseSplitter, as_json_array, split_blocks, split_reads

E = TypeVar("E")

Groups = list[tuple[int | tuple[int, ...], list[E]]]
"""(time of a read, the events that it completed). A run over many reads is one group with the times
of them all, each of which then completed events that carry tokens."""

_END = b"\n\n"
_EVENT = b"data: "
_DONE = b"data: [DONE]"
# Below some ten events decoding each costs less than looking for a run.
_LONG_BLOCK_BYTES = 2_000
# A role-only event, sometimes an empty one, then the first content.
_EVENTS_BEFORE_RUN = 3
# A stream in real time has a read for each event or few; from here on looking for a run pays.
_MANY_READS = 8


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
        bulk = self._as_run(reads, is_whole) or self._in_blocks(reads, is_whole)
        return (bulk, False) if bulk is not None else self._one_by_one(reads, is_whole)

    def decode_one(self, data: bytes) -> E | None:
        """One event; None when it is malformed."""
        try:
            return self._one.decode(data)
        except msgspec.DecodeError:
            return None

    def _as_run(self, reads: list[tuple[int, bytes]], is_whole: bool) -> Groups[E | Run] | None:
        """Many reads of whole content events as one run: a fifth of the time of each by itself."""
        if self._run_key is None or len(reads) < _MANY_READS:
            return None
        groups: Groups[E | Run] = []
        for number in range(_EVENTS_BEFORE_RUN):
            time_ns, piece = reads[number]
            events = self._decode_block(piece[: -len(_END)]) if piece.endswith(_END) else None
            if not events:
                return None
            groups.append((time_ns, events))
            data = piece[: -len(_END)].rpartition(_EVENT)[2]
            pattern = None if isinstance(events[-1], Run) else self._pattern(data, events[-1])
            if pattern is not None:
                rest = self._run_over(reads[number + 1 :], pattern, is_whole)
                return None if rest is None else groups + rest
        return None

    def _run_over(
        self, reads: list[tuple[int, bytes]], pattern: RunPattern, is_whole: bool
    ) -> Groups[E | Run] | None:
        """The run at the start of `reads`, and what follows it; None when there is no such run."""
        joined = b"".join([piece for _, piece in reads])
        taken = pattern.take(joined)
        # With an empty text in it, some read might carry no token, and which is not known.
        if taken is None or taken[0].carrying != taken[0].events:
            return None
        run, left = taken
        missing = len(joined) - len(left)
        times_ns: list[int] = []
        for time_ns, piece in reads:
            if missing < len(piece):
                break
            # Within a run two line feeds are the end of an event and nothing else.
            if not piece.endswith(_END):
                return None
            missing -= len(piece)
            times_ns.append(time_ns)
        after = reads[len(times_ns) :]
        if missing:
            times_ns.append(after[0][0])
            after[0] = (after[0][0], after[0][1][missing:])
        rest = self._in_blocks(after, is_whole)
        return None if rest is None else [(tuple(times_ns), [run]), *rest]

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


def measure(
    groups: Sequence[tuple[int | tuple[int, ...], list[E]]], reply: Reply[E], progress: Progress
) -> None:
    """Put the times of a stream's tokens into `progress`.

    A read's tokens share its one timestamp, so gaps are between reads that carried any, and never
    a row of zeros inside one (trap 46). Role-only and usage-only events carry none (trap 45).
    """
    chunks = 0
    times_ns: list[int] = []
    for time_ns, events in groups:
        carrying, has_content = reply.add(events)
        if not carrying:
            continue
        chunks += carrying
        came_ns = time_ns if isinstance(time_ns, tuple) else (time_ns,)
        if has_content and progress.first_content_ns is None:
            progress.first_content_ns = came_ns[0]
        # What is left of the read in which a run ended has that read's time.
        times_ns += came_ns[1:] if times_ns and times_ns[-1] == came_ns[0] else came_ns
    if times_ns:
        progress.first_token_ns = times_ns[0]
        progress.last_token_ns = times_ns[-1]
    progress.chunks = chunks
    progress.gaps_ns = [later - earlier for earlier, later in pairwise(times_ns)]


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

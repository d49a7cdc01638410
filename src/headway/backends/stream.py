"""From the reads of a streamed reply to its events, and from those to the times of its tokens.

All of this runs when the reply is over, so that no other stream waits for it (trap 43).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import msgspec

from headway.backends.backend import Progress
from headway.wire.sse import SseSplitter, as_json_array, completed_in_each, split_reads

E = TypeVar("E")

Groups = list[tuple[int, list[E]]]


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
    """Decodes events of one type, in bulk where their shape allows it."""

    def __init__(self, event_type: type[E]) -> None:
        self._one = msgspec.json.Decoder(event_type)
        self._many: msgspec.json.Decoder[list[E]] = msgspec.json.Decoder(list[event_type])  # type: ignore[valid-type]  # a run-time type

    def decode(self, reads: list[tuple[int, bytes]], is_whole: bool) -> tuple[Groups[E], bool]:
        """The events that each read completed.

        Args:
            reads: (time, bytes) in order.
            is_whole: The stream came to its end.

        Returns:
            The groups up to the first malformed event, and whether there was one.
        """
        bulk = self._in_bulk(reads)
        return (bulk, False) if bulk is not None else self._one_by_one(reads, is_whole)

    def decode_one(self, data: bytes) -> E | None:
        """One event; None when it is malformed."""
        try:
            return self._one.decode(data)
        except msgspec.DecodeError:
            return None

    def _in_bulk(self, reads: list[tuple[int, bytes]]) -> Groups[E] | None:
        body = reads[0][1] if len(reads) == 1 else b"".join([piece for _, piece in reads])
        array = as_json_array(body)
        if array is None:
            return None
        try:
            events = self._many.decode(array[0])
        except msgspec.DecodeError:
            return None
        if len(events) != array[1]:
            return None
        if len(reads) == 1:
            return [(reads[0][0], events)]
        return _grouped(events, completed_in_each(body, reads), reads)

    def _one_by_one(self, reads: list[tuple[int, bytes]], is_whole: bool) -> tuple[Groups[E], bool]:
        groups: Groups[E] = []
        for time_ns, payloads in split_reads(reads, is_whole):
            events: list[E] = []
            for data in payloads:
                if data.strip() == b"[DONE]":
                    groups.append((time_ns, events))
                    return groups, False
                event = self.decode_one(data)
                if event is None:
                    groups.append((time_ns, events))
                    return groups, True
                events.append(event)
            groups.append((time_ns, events))
        return groups, False


def _grouped(
    events: list[E], counts: list[int], reads: list[tuple[int, bytes]]
) -> Groups[E] | None:
    # One more than there are events: [DONE], which is none.
    if sum(counts) - len(events) not in (0, 1):
        return None
    groups: Groups[E] = []
    taken = 0
    for (time_ns, _), count in zip(reads, counts, strict=True):
        if count:
            groups.append((time_ns, events[taken : taken + count]))
            taken += count
    return groups


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

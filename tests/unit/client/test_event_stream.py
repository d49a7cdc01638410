"""Server-sent events, cut wherever a network may cut them."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headway.client.event_stream import EventStreamDecoder, ServerSentEvent

STREAM = (
    b": a comment\n\n"
    b'event: log\ndata: {"attempt":1}\nid: 1:17\n\n'
    b"data: two\r\ndata: lines\r\n\r\n"
    b"event: end\ndata: {}\n\n"
    b"data: unfinished"
)
EVENTS = [
    ServerSentEvent("log", '{"attempt":1}', "1:17"),
    ServerSentEvent("message", "two\nlines", None),
    ServerSentEvent("end", "{}", None),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    decoder = EventStreamDecoder()
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[a:b] for a, b in pairwise(edges)]
    assert [event for piece in pieces for event in decoder.feed(piece)] == EVENTS


def test_text_outside_ascii_survives_a_cut_inside_a_character() -> None:
    decoder = EventStreamDecoder()
    whole = "data: größer ✓\n\n".encode()
    events = [event for byte in whole for event in decoder.feed(bytes([byte]))]
    assert [event.data for event in events] == ["größer ✓"]

"""Splitting server-sent events: any cutting of a stream gives the same events."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.wire.sse import SseSplitter, as_json_array, split_blocks, split_reads


def events_of(*pieces: bytes, finish: bool = False) -> list[bytes]:
    splitter = SseSplitter()
    events = [event for piece in pieces for event in splitter.feed(piece)]
    return events + splitter.finish() if finish else events


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"data: one\n\ndata: two\n\n", [b"one", b"two"]),
        (b"data:one\n\n", [b"one"]),
        (b"data:  one\n\n", [b" one"]),
        (b"data: one\r\n\r\ndata: two\r\n\r\n", [b"one", b"two"]),
        (b"data: one\r\rdata: two\r\r", [b"one"]),
        (b": comment\n\ndata: one\n\n: another\n\n", [b"one"]),
        (b"event: delta\nid: 7\nretry: 10\ndata: one\n\n", [b"one"]),
        (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
        (b"data\n\n", [b""]),
        (b"\n\n\ndata: one\n\n\n\n", [b"one"]),
        (b"database: no\n\n", []),
        (b"\xef\xbb\xbfdata: one\n\n", [b"one"]),
        (b"data: one\n", []),
    ],
)
def test_the_format_s_cases(text: bytes, events: list[bytes]) -> None:
    assert events_of(text) == events


def test_a_last_event_without_its_blank_line_counts_when_the_stream_is_over() -> None:
    assert events_of(b"data: one\n\ndata: two", finish=True) == [b"one", b"two"]
    assert events_of(b"data: one\r\rdata: two\r\r", finish=True) == [b"one", b"two"]
    assert events_of(b"data: one\n\n", finish=True) == [b"one"]


texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=12)
lines = st.one_of(
    texts.map(lambda text: f"data: {text}"),
    texts.map(lambda text: f": {text}"),
    st.sampled_from(["event: delta", "id: 1", "retry: 5", "data", "", ""]),
)


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream with any mixture of lines and line ends, and pieces that make it up."""
    written = draw(st.lists(st.tuples(lines, st.sampled_from(["\n", "\r\n", "\r"])), max_size=12))
    stream = "".join(line + end for line, end in written).encode()
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    edges = [0, *cuts, len(stream)]
    return stream, [stream[a:b] for a, b in pairwise(edges)]


@given(cut_streams())
def test_any_cutting_of_a_stream_gives_the_same_events(cut: tuple[bytes, list[bytes]]) -> None:
    """UTF-8 characters and line ends cut in two included."""
    stream, pieces = cut
    assert events_of(*pieces, finish=True) == events_of(stream, finish=True)


@given(cut_streams())
def test_reads_get_each_event_once_and_in_order(cut: tuple[bytes, list[bytes]]) -> None:
    stream, pieces = cut
    groups = split_reads(list(enumerate(pieces)), is_whole=True)
    assert [event for _, events in groups for event in events] == events_of(stream, finish=True)
    assert [time for time, _ in groups] == sorted(time for time, _ in groups)


def test_an_event_belongs_to_the_read_that_completed_it() -> None:
    reads = [(10, b"data: o"), (20, b"ne\n"), (30, b"\ndata: two\n\ndata: thr"), (40, b"ee\n\n")]
    assert split_reads(reads, is_whole=True) == [(30, [b"one", b"two"]), (40, [b"three"])]
    blocks, rest = split_blocks(reads)
    assert blocks == [(30, b"data: one\n\ndata: two"), (40, b"data: three")]
    assert rest == b""


def test_plain_json_events_become_one_array() -> None:
    block = b'data: {"a":1}\n\ndata: {"a":2}\n\ndata: [DONE]'
    array = as_json_array(block)
    assert array is not None
    assert json.loads(array[0]) == [{"a": 1}, {"a": 2}]
    assert array[1] == 2


@pytest.mark.parametrize(
    "block",
    [
        b': comment\n\ndata: {"a":1}',
        b'data: {"a":1}\r\n\r\ndata: {"a":2}',
        b'data: {"a":1}\n\nevent: x\ndata: {"a":2}',
        b'data: {"a":\ndata: 1}',
        b'data: {"a":1}\n\ndata: {"a":',
        b"data: 1\n\ndata: 2,3",
        b'data: [DONE]\n\ndata: {"a":1}',
    ],
)
def test_anything_else_does_not_pass_for_an_array_of_as_many_elements(block: bytes) -> None:
    array = as_json_array(block)
    if array is not None:
        try:
            decoded = json.loads(array[0])
        except ValueError:
            return
        assert len(decoded) != array[1]

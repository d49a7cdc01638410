"""From reads to the times of tokens, and runs against the one-by-one way (traps 45, 46)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.backends.backend import Progress
from headway.backends.openai_chat import ChatDialect
from headway.backends.openai_completions import CompletionsDialect
from headway.backends.runs import Run
from headway.backends.stream import FirstTokenWatch, measure


def event(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    text = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": choices, **more}
    return (
        b"data: " + json.dumps(text, separators=(",", ":"), ensure_ascii=False).encode() + b"\n\n"
    )


DONE = b"data: [DONE]\n\n"
ROLE = event({"role": "assistant", "content": ""})
USAGE = event(usage={"prompt_tokens": 5, "completion_tokens": 3})


def content(text: str) -> bytes:
    return event({"content": text})


def measured(reads: list[tuple[int, bytes]]) -> tuple[Progress, Any]:
    dialect = ChatDialect()
    groups, is_malformed = dialect.decoder.decode(reads, is_whole=True)
    assert not is_malformed
    reply, progress = dialect.new_reply(), Progress()
    measure(groups, reply, progress)
    return progress, reply.summary()


def test_a_role_only_event_is_no_first_token_and_a_usage_only_one_no_chunk() -> None:
    """Trap 45: TTFT taken at a role-only first chunk is too low."""
    progress, summary = measured(
        [(10, ROLE), (20, content("a")), (30, content("b")), (45, content("c")),
         (50, event({}, "stop")), (60, USAGE + DONE)]
    )  # fmt: skip
    assert progress.first_token_ns == progress.first_content_ns == 20
    assert progress.last_token_ns == 45
    assert progress.gaps_ns == [10, 15]
    assert progress.chunks == 3
    assert summary.text == "abc"
    assert summary.finish_reason == "stop"
    assert summary.usage.completion_tokens == 3


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
    ],
)
def test_the_first_token_may_come_on_any_channel(delta: dict[str, Any]) -> None:
    """Trap 45: a reasoning model's TTFT is its first reasoning token, TTFO its first content."""
    progress, _ = measured([(10, ROLE), (20, event(delta)), (70, content("x")), (80, DONE)])
    assert progress.first_token_ns == 20
    assert progress.first_content_ns == 70
    assert progress.chunks == 2


@pytest.mark.parametrize("delta", [{}, {"content": None}, {"reasoning": ""}, {"tool_calls": []}])
def test_an_empty_event_carries_no_token(delta: dict[str, Any]) -> None:
    progress, _ = measured([(10, event(delta)), (20, DONE)])
    assert progress.first_token_ns is None
    assert progress.last_token_ns is None
    assert progress.chunks == 0
    assert progress.gaps_ns == []


def test_tokens_of_one_read_share_its_time_and_make_no_zero_gaps() -> None:
    """Trap 46: with several tokens in a chunk, "inter-token latency" became mostly 0."""
    progress, _ = measured(
        [(10, content("a") + content("b")), (40, content("c") * 5), (45, USAGE), (50, DONE)]
    )
    assert progress.chunks == 7
    assert progress.gaps_ns == [30]
    assert (progress.first_token_ns, progress.last_token_ns) == (10, 40)


def test_tool_calls_are_put_together_for_the_history() -> None:
    _, summary = measured(
        [
            (1, event({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "find"}}]})),
            (2, event({"tool_calls": [{"index": 0, "function": {"arguments": '{"q":'}}]})),
            (3, event({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "go"}}]})),
            (4, event({"tool_calls": [{"index": 0, "function": {"arguments": '"x"}'}}]})),
            (5, event({}, "tool_calls") + DONE),
        ]
    )
    calls = summary.message.extra["tool_calls"]
    assert [call["function"] for call in calls] == [
        {"name": "find", "arguments": '{"q":"x"}'},
        {"name": "go", "arguments": ""},
    ]
    assert [call["id"] for call in calls] == ["a", "b"]


def test_reasoning_is_not_sent_back() -> None:
    _, summary = measured([(1, event({"reasoning_content": "hm"})), (2, content("yes")), (3, DONE)])
    assert summary.message.content == "yes"
    assert summary.message.extra is None
    assert summary.text == "yes"


def test_a_malformed_event_ends_the_reading_and_keeps_what_came_before() -> None:
    dialect = ChatDialect()
    reads = [(10, content("a")), (20, b'data: {"choices": [{"del\n\n'), (30, content("b"))]
    groups, is_malformed = dialect.decoder.decode(reads, is_whole=True)
    assert is_malformed
    reply, progress = dialect.new_reply(), Progress()
    measure(groups, reply, progress)
    assert (progress.chunks, progress.last_token_ns) == (1, 10)


def test_a_stream_cut_in_an_event_is_not_malformed() -> None:
    """A cancelled request: the half event at its end is nobody's mistake."""
    groups, is_malformed = ChatDialect().decoder.decode(
        [(10, content("a")), (20, content("b")[:20])], is_whole=False
    )
    assert not is_malformed
    assert [time for time, _ in groups] == [10]


def test_without_done_and_without_the_last_blank_line_all_tokens_count() -> None:
    progress, summary = measured([(10, content("a")), (20, content("b").rstrip(b"\n"))])
    assert progress.chunks == 2
    assert progress.last_token_ns == 20
    assert summary.text == "ab"


def test_an_event_that_only_the_end_completes_makes_no_gap_of_zero() -> None:
    """Trap 46: it came in the last read, together with the one before it."""
    last = content("b") + content("c").rstrip(b"\n")
    progress, _ = measured([(10, content("a")), (20, last)])
    assert (progress.chunks, progress.gaps_ns) == (3, [10])


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n: keep-alive\n\n", b"\nid: 7\n\n"])
def test_streams_of_another_shape_are_read_the_same(end: bytes) -> None:
    parts = [content(text).rstrip(b"\n") + end for text in "abc"]
    progress, summary = measured([(10, parts[0]), (20, parts[1] + parts[2]), (30, DONE)])
    assert (progress.chunks, progress.gaps_ns, summary.text) == (3, [10], "abc")


def test_a_long_block_of_content_is_taken_as_a_run() -> None:
    """P2: the shape that the fast way is for does take it."""
    body = ROLE + b"".join(content(f" w{i}") for i in range(50)) + event({}, "stop") + USAGE + DONE
    groups, _ = ChatDialect().decoder.decode([(7, body)], is_whole=True)
    assert any(isinstance(item, Run) and item.carrying > 40 for item in groups[0][1])
    progress, summary = measured([(7, body)])
    assert progress.chunks == 50
    assert summary.text == "".join(f" w{i}" for i in range(50))
    assert summary.finish_reason == "stop"
    assert summary.usage.completion_tokens == 3


texts = st.one_of(
    st.text(max_size=6),
    st.sampled_from(["", '"', "\\", '\\"', '"content":"', "\n\n", "data: ", "żó", "\\n", "\x00"]),
)
deltas = st.one_of(
    texts.map(lambda text: {"content": text}),
    texts.map(lambda text: {"reasoning_content": text}),
    texts.map(lambda text: {"content": text, "reasoning": text}),
    st.just({}),
)
events = st.one_of(
    st.lists(texts, min_size=12, max_size=40).map(lambda ts: b"".join(map(content, ts))),
    deltas.map(event),
    st.sampled_from([USAGE, event({}, "stop"), event({"content": "x"}, created=2)]),
)


@given(st.lists(events, max_size=6), st.lists(st.integers(0, 8000), max_size=6), st.booleans())
def test_runs_and_blocks_say_the_same_as_one_event_after_another(
    written: list[bytes], cuts: list[int], ends_with_done: bool
) -> None:
    """Whatever the texts hold and wherever the reads cut, both ways agree."""
    body = b"".join(written) + (DONE if ends_with_done else b"")
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    reads = [(a + 1, body[a:b]) for a, b in pairwise(edges)]
    check_same(reads)


def check_same(reads: list[tuple[int, bytes]]) -> None:
    progress, summary = measured(reads)
    dialect = ChatDialect()
    slow_groups, is_malformed = dialect.decoder._one_by_one(reads, True)
    assert not is_malformed
    slow_reply, slow = dialect.new_reply(), Progress()
    measure(slow_groups, slow_reply, slow)
    expected = slow_reply.summary()
    assert summary.text == expected.text
    assert summary.finish_reason == expected.finish_reason
    for name in ("chunks", "gaps_ns", "first_token_ns", "first_content_ns", "last_token_ns"):
        assert getattr(progress, name) == getattr(slow, name), name


many_events = st.one_of(
    st.lists(st.text(min_size=1, max_size=6), min_size=4, max_size=30).map(
        lambda ts: [content(text) for text in ts]
    ),
    events.map(lambda event: [event]),
)


@given(
    st.lists(many_events, min_size=1, max_size=5).map(
        lambda parts: [event for part in parts for event in part]
    ),
    st.lists(st.integers(1, 4), max_size=60),
    st.lists(st.integers(0, 8000), max_size=2),
    st.booleans(),
)
def test_a_run_over_many_reads_says_the_same_as_one_event_after_another(
    written: list[bytes], sizes: list[int], cuts: list[int], opens_with_role: bool
) -> None:
    """Most reads end with an event, as in a stream in real time; some are cut anywhere."""
    written = [ROLE] * opens_with_role + [*written, event({}, "stop"), USAGE, DONE]
    body, edges = b"".join(written), {0}
    while written:
        size = sizes.pop() if sizes else 1
        edges.add(max(edges) + len(b"".join(written[:size])))
        del written[:size]
    edges |= {min(cut, len(body)) for cut in cuts}
    reads = [(a + 1, body[a:b]) for a, b in pairwise(sorted(edges))]
    check_same(reads)


def test_a_stream_in_real_time_is_taken_as_a_run() -> None:
    """P2, P5: the shape that the fast way is for does take it, with the last read's rest."""
    pieces = [ROLE + content("a"), *[content(f" w{i}") for i in range(30)]]
    pieces += [content(" y") + content(" z"), content("!") + event({}, "stop"), USAGE + DONE]
    reads = [(10 * number, piece) for number, piece in enumerate(pieces, 1)]
    groups, _ = ChatDialect().decoder.decode(reads, is_whole=True)
    assert len(groups) == 4
    assert isinstance(groups[1][1][0], Run)
    check_same(reads)


def test_completions_take_runs_too() -> None:
    def text_event(text: str, finish: str | None = None) -> bytes:
        choice = {"index": 0, "text": text, "finish_reason": finish}
        return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"

    # With a space after the colon the key is not found: read all the same, only slower.
    for compact in (False, True):
        body = b"".join(text_event(f" w{i}") for i in range(60)) + text_event("", "length") + DONE
        if compact:
            body = body.replace(b'": ', b'":')
        dialect = CompletionsDialect()
        groups, _ = dialect.decoder.decode([(7, body)], is_whole=True)
        reply, progress = dialect.new_reply(), Progress()
        measure(groups, reply, progress)
        assert any(isinstance(item, Run) for item in groups[0][1]) == compact
        assert progress.chunks == 60
        assert reply.summary().finish_reason == "length"
        assert reply.summary().text == "".join(f" w{i}" for i in range(60))


def test_the_watch_says_when_the_first_token_came_and_not_before() -> None:
    dialect = ChatDialect()

    def carries(data: bytes) -> bool:
        found = dialect.decoder.decode_one(data)
        return found is not None and dialect.new_reply().add([found])[0] > 0

    watch = FirstTokenWatch(carries)
    whole = content("x")
    assert not watch(1, ROLE)
    assert not watch(2, whole[:15])
    assert not watch(3, whole[15:-1])
    assert watch(4, whole[-1:])

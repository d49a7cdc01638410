"""L6, L10: recorded sessions of agents, each at its time, with its turns along their edges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.backends.spec import OpenAIBackendSpec
from headway.core.distributions import Constant
from headway.core.errors import ConfigError, InputError
from headway.load.inputs import offsets_ns
from headway.load.inputs.conversation import Links
from headway.load.spec import TraceInputSpec

MS = 1_000_000


def step(
    name: str,
    *after: str,
    start: float | None = None,
    took: float | None = None,
    tokens: int | None = None,
    out: int | None = None,
    **fields: Any,
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": name,
        "after": list(after),
        "offset_ms": start,
        "duration_ms": took,
        "input_length": tokens,
        "output_length": out,
    }
    return {key: value for key, value in (entry | fields).items() if value is not None}


def written(tmp_path: Path, *sessions: dict[str, Any], **fields: Any) -> TraceInputSpec:
    path = tmp_path / "sessions.jsonl"
    path.write_text("".join(json.dumps(session) + "\n" for session in sessions))
    return TraceInputSpec(path=path, **fields)


def words(turn: Any) -> list[str]:
    prompt: str = turn.call.prompt
    return prompt.split()


async def test_sessions_arrive_at_their_times_and_gaps_become_think_times(
    opened: Any, tmp_path: Path
) -> None:
    later = {"timestamp": 900, "turns": [step("a", tokens=5, out=1)]}
    agent = {
        "timestamp": 250,
        "turns": [
            step("plan", start=0, took=1000, tokens=10, out=5),
            step("x", "plan", start=1100, took=500, tokens=30, out=7),
            step("y", "plan", start=1400, took=2000, tokens=40, out=8),
            step("sum", "x", "y", start=3650, took=10, tokens=100, out=9),
        ],
    }
    recipe, inputs = await opened(written(tmp_path, later, agent))
    assert list(offsets_ns(recipe)) == [0, 650 * MS]
    assert any("not in order" in note.text for note in recipe.notes)
    turns = inputs.conversation(0).turns
    assert [one.think_time_s for one in turns] == pytest.approx([0, 0.1, 0.4, 0.25])
    assert [one.links for one in turns] == [None, None, Links((0,)), Links((1, 2))]
    assert [one.call.output_tokens for one in turns] == [5, 7, 8, 9]
    # A prompt's length is the whole: 10+5 go before x and y, and all of theirs before the join.
    assert [len(words(one)) for one in turns] == [10, 15, 25, 30]
    assert inputs.conversation(2) is None
    assert recipe.conversations == 2


async def test_a_session_that_begins_with_several_turns_arrives_with_the_first(
    opened: Any, tmp_path: Path
) -> None:
    session = {
        "timestamp": 1000,
        "turns": [
            step("late", start=500, tokens=10),
            step("early", start=200, tokens=10),
            step("text", start=200, prompt="as recorded"),
        ],
    }
    before = {"timestamp": 0, "turns": [step("a", tokens=3)]}
    recipe, inputs = await opened(written(tmp_path, before, session))
    assert list(offsets_ns(recipe)) == [0, 1200 * MS]
    late, early, text = inputs.conversation(1).turns
    assert [one.think_time_s for one in (late, early, text)] == [0.5, 0.2, 0.2]
    assert words(late)[0] != words(early)[0], "no prefix is shared by accident"
    assert text.call.prompt == "as recorded"


async def test_lengths_that_are_missing_are_drawn_and_history_can_be_left_out(
    opened: Any, tmp_path: Path
) -> None:
    session = {
        "timestamp": 0,
        "turns": [
            {"hash_ids": [1], "input_length": 20},
            {"output_length": 3},
            {"input_length": 20, "hash_ids": [1], "history": [], "think_time_s": 2},
        ],
    }
    spec = written(
        tmp_path, session, prompt_tokens=Constant(value=6), output_tokens=Constant(value=4)
    )
    _, inputs = await opened(spec)
    first, second, third = inputs.conversation(0).turns
    assert [len(words(one)) for one in (first, second, third)] == [20, 6, 20]
    assert words(first) == words(third), "the same block"
    assert [one.call.output_tokens for one in (first, second, third)] == [4, 3, 4]
    assert third.think_time_s == 2.0


async def test_a_prompt_shorter_than_its_history_is_told(opened: Any, tmp_path: Path) -> None:
    turns = [step("a", tokens=50, out=10), step("b", "a", tokens=40, out=1)]
    recipe, inputs = await opened(written(tmp_path, {"timestamp": 0, "turns": turns}))
    assert len(words(inputs.conversation(0).turns[1])) == 1
    assert any(
        "1 turns were recorded with a prompt no longer" in note.text for note in recipe.notes
    )


async def test_the_edges_are_part_of_the_workload(opened: Any, tmp_path: Path) -> None:
    hashes = set()
    for after in ("a", "b"):
        turns = [step("a", tokens=5), step("b", "a", tokens=9), step("c", after, tokens=30)]
        recipe, _ = await opened(written(tmp_path, {"timestamp": 0, "turns": turns}))
        hashes.add(recipe.workload_hash)
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("session", "reason"),
    [
        ({"turns": [{}]}, "line 1: no timestamp"),
        ({"timestamp": 0, "turns": 3}, "line 1: no turns"),
        ({"timestamp": 0, "turns": []}, "line 1: turns is empty"),
        ({"timestamp": 0, "turns": [{"offset_ms": -1}]}, "line 1: offset_ms is not a number of at"),
        ({"timestamp": 0, "turns": [{"input_length": 1.5}]}, "input_length is not a whole number"),
        (
            {"timestamp": 0, "turns": [step("a", start=0), step("b", "a", start=3)]},
            "line 1: turn 'b' has an offset_ms, and turn 'a', for which it waits, lacks",
        ),
        ({"timestamp": 0, "turns": [step("a", "z")]}, "line 1: after of turn 'a' names 'z'"),
    ],
)
async def test_unusable_sessions_are_refused_with_their_line(
    opened: Any, tmp_path: Path, session: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        await opened(written(tmp_path, session))


async def test_sessions_need_a_backend_with_conversations(opened: Any, tmp_path: Path) -> None:
    spec = written(tmp_path, {"timestamp": 0, "turns": [step("a", tokens=1)]})
    with pytest.raises(ConfigError, match="no conversations"):
        await opened(spec, backend=OpenAIBackendSpec(kind="openai-embeddings"))

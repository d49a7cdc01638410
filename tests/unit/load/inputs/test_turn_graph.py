"""L6: which turns of a row wait for which, what each hears, and what cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.errors import InputError
from headway.load.inputs.conversation import Links, lineage
from headway.load.inputs.listed_turns import StoredTurn, read_turns
from headway.load.inputs.problems import GraphError
from headway.load.spec import FileInputSpec


def turn(name: str, *after: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"do {name}", "after": list(after)} | fields


def read(*entries: Any) -> list[StoredTurn]:
    return [one.turn for one in read_turns(list(entries))]


def links(*entries: Any) -> list[Links | None]:
    return [one.links for one in read(*entries)]


def test_turns_without_a_word_about_it_follow_one_another() -> None:
    assert links("a", "b", {"prompt": "c"}) == [None, None, None]


def test_a_chain_is_the_same_whether_it_is_spelled_out_or_not() -> None:
    spelled = read(turn("a"), turn("b", "a"), turn("c", "b", history=["b"]))
    assert spelled == read("do a", "do b", "do c")


def test_siblings_wait_for_one_turn_and_a_join_for_all_of_them() -> None:
    found = links(turn("plan"), turn("x", "plan"), turn("y", "plan"), turn("sum", "y", "x"))
    assert found == [None, None, Links((0,)), Links((2, 1))]


def test_a_turn_may_be_listed_before_what_it_waits_for() -> None:
    turns = read(turn("sum", "x", "y"), turn("x"), turn("y"))
    assert [one.call.prompt for one in turns] == ["do x", "do y", "do sum"]
    assert [one.links for one in turns] == [None, Links(()), Links((0, 1))]


def test_think_times_belong_to_a_turn_or_to_each_edge() -> None:
    *_, one, each = read(
        turn("a"),
        turn("b"),
        turn("c", "a", "b", think_time_s=2),
        turn("d", "a", "b", think_time_s={"b": 0.5}),
    )
    assert (one.think_time_s, one.links) == (2.0, Links((0, 1)))
    assert (each.think_time_s, each.links) == (None, Links((0, 1), (None, 0.5)))


def test_numbers_are_ids_as_well_and_a_single_one_needs_no_list() -> None:
    found = links({"id": 7, "prompt": "a"}, {"id": 8, "prompt": "b", "after": 7}, turn("c", "7"))
    assert found == [None, None, Links((0,))]


def test_placeholders_name_the_turns_whose_answers_go_there() -> None:
    _, _, joined = read(
        turn("a"),
        turn("b", "a"),
        turn("c", "b", prompt="{{b}}, then {{a}} and {{b}}", history=[]),
    )
    assert joined.links == Links((1,), (), (), {"b": 1, "a": 0})
    parts = {"role": "user", "content": [{"type": "text", "text": "see {{a}}"}]}
    (_, seen) = links(turn("a"), {"id": "b", "messages": [parts]})
    assert seen == Links((0,), answers={"a": 0})


def test_texts_with_braces_are_left_alone_where_no_turn_has_an_id_or_the_turn_says_so() -> None:
    assert links("{{user.name}}", "b") == [None, None]
    kept = turn("b", "a", prompt="{{user}}", placeholders=False)
    assert links(turn("a"), kept) == [None, None]
    assert links(turn("a"), turn("b", "a", prompt="{{ user }} {user}")) == [None, None]


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([turn("a", "b")], "after of turn 'a' names 'b', which is no turn of the row"),
        ([turn("a"), turn("a")], "two turns have the id 'a'"),
        ([turn("a"), turn("b", "a", "a")], "after of turn 'b' names 'a' twice"),
        ([turn("a", "a")], "in a circle: turn 'a' after turn 'a'"),
        (
            [turn("r"), turn("a", "r", "c"), turn("b", "a"), turn("c", "b"), turn("d", "c")],
            "in a circle: turn 'a' after turn 'c' after turn 'b' after turn 'a'",
        ),
        ([turn("a", "b"), {"id": "b", "prompt": "x"}], "without `after` waits for the one before"),
        ([{"prompt": "x", "after": {"a": 1}}], "after of turn 1 is not a list of ids"),
        ([{"prompt": "x", "id": []}], "the id of turn 1 is neither a text nor a number"),
        (
            [turn("a"), turn("b"), turn("c", "b", history=["a"])],
            "turn 'c' has turn 'a' in its history, for which it does not wait",
        ),
        ([turn("a"), turn("b", history=["z"])], "history of turn 'b' names 'z'"),
        (
            [turn("a"), turn("b"), turn("c", "b", prompt="{{a}}")],
            "turn 'c' has the answer of turn 'a' in its text, for which it does not wait",
        ),
        ([turn("a", prompt="{{b}}")], r"the placeholder \{\{b\}\}, which is no turn of the row"),
        ([turn("a", prompt="{{a}}")], "has the answer of turn 'a' in its text"),
        ([turn("a"), turn("b", "a", think_time_s={"c": 1})], "think_time_s of turn 'b' names 'c'"),
        (
            [turn("a"), turn("b"), turn("c", "b", think_time_s={"a": 1})],
            "think_time_s of turn 'c' names 'a', which is not in its `after`",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_the_turns_name(entries: list[Any], reason: str) -> None:
    with pytest.raises(GraphError, match=reason):
        read(*entries)


async def test_a_graph_that_cannot_be_ends_the_run_before_it_starts(
    opened: Any, tmp_path: Path
) -> None:
    """Not left out as a line of a dirty data set is: it was meant."""
    path = tmp_path / "agents.jsonl"
    path.write_text('{"prompt": "fine"}\n{"turns": [{"id": "a", "prompt": "x", "after": ["b"]}]}\n')
    with pytest.raises(InputError, match=r"agents.jsonl, line 2: after of turn 'a' names 'b'"):
        await opened(FileInputSpec(path=path))


async def test_the_graph_is_part_of_the_workload(opened: Any, tmp_path: Path) -> None:
    def written(name: str, after: str) -> FileInputSpec:
        path = tmp_path / name
        path.write_text(
            '{"turns": [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y"}, '
            f'{{"prompt": "z", "after": {after}}}]}}\n'
        )
        return FileInputSpec(path=path)

    hashes = []
    for number, after in enumerate(('["b"]', '["a"]', '["a", "b"]', '["b", "a"]')):
        recipe, _ = await opened(written(f"{number}.jsonl", after))
        hashes.append(recipe.workload_hash)
    assert len(set(hashes)) == 4
    plain = tmp_path / "plain.jsonl"
    plain.write_text('{"turns": ["x", "y", "z"]}\n')
    recipe, _ = await opened(FileInputSpec(path=plain))
    assert recipe.workload_hash == hashes[0]


async def test_opened_turns_keep_their_links_and_begin_without_thinking(
    opened: Any, tmp_path: Path
) -> None:
    path = tmp_path / "agents.jsonl"
    path.write_text(
        '{"turns": [{"id": "a", "prompt": "x"}, {"id": "b", "prompt": "y", "after": []}, '
        '{"id": "c", "prompt": "z", "after": ["a", "b"], "think_time_s": {"b": 3}}]}\n'
    )
    _, inputs = await opened(FileInputSpec(path=path, think_time_s=4, unique_prefix=True))
    first, second, join = inputs.conversation(0).turns
    assert (first.think_time_s, second.think_time_s, join.think_time_s) == (0.0, 0.0, 4.0)
    assert join.links == Links((0, 1), (None, 3.0))
    openings = [
        one.call.prompt.removesuffix(f"\n{text}") for one, text in ((first, "x"), (second, "y"))
    ]
    assert openings[0] == openings[1], "of the conversation, which may share with itself"
    assert len(openings[0].split()) > 1
    assert join.call.prompt == "z", "its history has the opening"


@given(st.data())
def test_a_history_has_each_turn_once_and_after_its_own_sources(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 9))
    history = [
        tuple(data.draw(st.lists(st.integers(0, n - 1), unique=True))) if n else ()
        for n in range(size)
    ]
    heard = lineage(size - 1, history)
    assert len(heard) == len(set(heard))
    assert all(heard.index(source) < heard.index(one) for one in heard for source in history[one])
    assert set(history[size - 1]) <= set(heard)


def test_the_history_of_a_join_follows_the_order_that_it_lists() -> None:
    assert lineage(3, [(), (0,), (0,), (2, 1)]) == [0, 2, 1]
    assert lineage(3, [(), (0,), (1,), (2,)]) == [0, 1, 2]
    assert lineage(2_000, [(), *((n,) for n in range(2_000))]) == list(range(2_000))

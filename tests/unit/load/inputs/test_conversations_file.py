"""L10: conversations from files, in any order, by any number of workers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow
import pytest
from pyarrow import parquet

from headway.backends.spec import HttpBackendSpec, OpenAIBackendSpec
from headway.core.distributions import Uniform
from headway.core.errors import ConfigError, InputError
from headway.load.inputs import Inputs, Recipe, open_inputs
from headway.load.spec import FileInputSpec

CHAT = (
    '{"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": "a b"},'
    ' {"role": "user", "content": "2"}], "max_tokens": 9}\n'
)


def numbered(tmp_path: Path, count: int, name: str = "prompts.txt") -> Path:
    path = tmp_path / name
    path.write_text("".join(f"prompt {n}\n" for n in range(count)))
    return path


def prompts(inputs: Inputs, count: int) -> list[str | None]:
    found = [inputs.conversation(index) for index in range(count)]
    return [one.turns[0].call.prompt if one else None for one in found]


async def test_rows_come_in_order_and_then_the_input_ends(opened: Any, tmp_path: Path) -> None:
    """L7, trap 32: the end is told by None, and its place is known before anything starts."""
    recipe, inputs = await opened(FileInputSpec(path=numbered(tmp_path, 3)))
    assert prompts(inputs, 5) == ["prompt 0", "prompt 1", "prompt 2", None, None]
    assert recipe.conversations == 3


async def test_repeat_begins_again(opened: Any, tmp_path: Path) -> None:
    recipe, inputs = await opened(FileInputSpec(path=numbered(tmp_path, 3), repeat=True))
    assert prompts(inputs, 7)[3:] == ["prompt 0", "prompt 1", "prompt 2", "prompt 0"]
    assert recipe.conversations is None


async def test_shuffle_sends_every_row_once_in_an_order_of_the_seed(
    opened: Any, tmp_path: Path
) -> None:
    spec = FileInputSpec(path=numbered(tmp_path, 200), shuffle=True, repeat=True)
    orders = []
    for seed, stage in ((1, 0), (1, 0), (2, 0), (1, 1)):
        _, inputs = await opened(spec, seed=seed, stage=stage)
        laps = prompts(inputs, 400)
        assert len(set(laps[:200])) == len(set(laps[200:])) == 200
        assert laps[:200] != laps[200:]
        orders.append(tuple(laps))
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3


async def test_the_recipe_crosses_to_workers_as_plain_data(opened: Any, tmp_path: Path) -> None:
    recipe, inputs = await opened(FileInputSpec(path=numbered(tmp_path, 50), shuffle=True))
    sent = msgspec.msgpack.encode(recipe)
    assert len(sent) < 20_000
    worker = open_inputs(msgspec.msgpack.decode(sent, type=Recipe), 7)
    assert [worker.conversation(n) for n in range(50)] == [
        inputs.conversation(n) for n in range(50)
    ]
    worker.close()


async def test_csv_and_parquet_of_the_same_rows_are_the_same_workload(
    opened: Any, tmp_path: Path
) -> None:
    """N9: the workload hash says what is sent, not where it lay or how it was written."""
    (tmp_path / "a.csv").write_text("question,max_tokens\nhello,5\nbye,6\n")
    table = pyarrow.table({"prompt": ["hello", "bye"], "output_tokens": [5, 6]})
    parquet.write_table(table, tmp_path / "b.parquet")
    (tmp_path / "c.jsonl").write_text('{"text": "hello", "max_tokens": 5}\n["bye"]\n')
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "a.csv", tmp_path / "elsewhere" / "other.csv")
    hashes = [
        (await opened(FileInputSpec(path=tmp_path / name)))[0].workload_hash
        for name in ("a.csv", "b.parquet", "elsewhere/other.csv", "c.jsonl")
    ]
    assert len(set(hashes[:3])) == 1
    assert hashes[3] != hashes[0]


@pytest.mark.parametrize(
    "change", [{"turns": True}, {"output_tokens": 5}, {"repeat": True}, {"unique_prefix": True}]
)
async def test_whatever_changes_what_is_sent_changes_the_workload_hash(
    opened: Any, tmp_path: Path, change: dict[str, Any]
) -> None:
    spec = FileInputSpec(path=numbered(tmp_path, 3))
    plain, _ = await opened(spec)
    changed, _ = await opened(FileInputSpec.model_validate({**spec.model_dump(), **change}))
    assert changed.workload_hash != plain.workload_hash


async def test_unusable_lines_are_left_out_and_told(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "a"}\nnonsense\n{"prompt": "b"}\n{"prompt": ""}\n')
    recipe, inputs = await opened(FileInputSpec(path=path))
    assert prompts(inputs, 3) == ["a", "b", None]
    (note,) = [one for one in recipe.notes if "left out" in one.text]
    assert note.text.startswith("2 of 4 lines of a.jsonl were left out: line 2: not JSON")
    assert "line 4: no prompt found" in note.text


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.txt"])
@pytest.mark.parametrize("content", ["", "\n\n  \n"])
async def test_an_empty_file_is_an_error_before_anything_starts(
    opened: Any, tmp_path: Path, name: str, content: str
) -> None:
    """Trap 32: empty inputs hung."""
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=f"{name} is empty"):
        await opened(FileInputSpec(path=tmp_path / name))


async def test_a_file_of_unusable_lines_is_an_error_that_names_them(
    opened: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("title,body\nx,y\nz,w\n")
    with pytest.raises(InputError, match=r"line 2, 3: no prompt found.*\(columns: title, body\)"):
        await opened(FileInputSpec(path=path))


async def test_every_user_message_is_a_turn_with_think_time(opened: Any, tmp_path: Path) -> None:
    """L6."""
    path = tmp_path / "a.jsonl"
    path.write_text(CHAT)
    spec = FileInputSpec(path=path, turns=True, think_time_s=Uniform(low=1, high=2))
    _, inputs = await opened(spec)
    first, second = inputs.conversation(0).turns
    assert first.think_time_s == 0
    assert 1 <= second.think_time_s <= 2
    assert [turn.call.messages[-1].content for turn in (first, second)] == ["1", "2"]
    assert second.call.output_tokens == 9


async def test_a_turns_own_think_time_wins(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"turns": ["a", {"prompt": "b", "think_time_s": 0.25}, "c"]}\n')
    _, inputs = await opened(FileInputSpec(path=path, think_time_s=3))
    assert [turn.think_time_s for turn in inputs.conversation(0).turns] == [0, 0.25, 3]


async def test_output_lengths_of_the_spec_replace_those_of_the_rows(
    opened: Any, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(CHAT)
    _, inputs = await opened(FileInputSpec(path=path, output_tokens=Uniform(low=20, high=30)))
    assert 20 <= inputs.conversation(0).turns[0].call.output_tokens <= 30


async def test_recorded_answers_are_counted_by_the_tokenizer_or_in_words(
    opened: Any, tmp_path: Path, tokenizer_file: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "a", "answer": "time zzzzq"}\n')
    recipe, inputs = await opened(FileInputSpec(path=path, answer_lengths=True))
    assert inputs.conversation(0).turns[0].call.output_tokens == 2
    assert any("counted in words" in note.text for note in recipe.notes)
    spec = FileInputSpec(path=path, answer_lengths=True, tokenizer=tokenizer_file)
    recipe, inputs = await opened(spec)
    assert inputs.conversation(0).turns[0].call.output_tokens > 2
    assert not any("counted in words" in note.text for note in recipe.notes)


async def test_a_unique_prefix_goes_before_everything_else(opened: Any, tmp_path: Path) -> None:
    """Trap 50: on demand, a repeated row does not hit the cache that it left behind."""
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"prompt": "hello"}\n'
        '{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]}\n'
        '{"messages": [{"role": "user", "content": [{"type": "text", "text": "u"}]}]}\n'
    )
    spec = FileInputSpec(path=path, unique_prefix=True, repeat=True)
    recipe, inputs = await opened(spec)
    beginnings = set()
    for index in range(300):
        call = inputs.conversation(index).turns[0].call
        begin = call.prompt or call.messages[0].content
        beginnings.add((begin if isinstance(begin, str) else begin[0]["text"]).split("\n")[0])
    assert len(beginnings) == 300
    assert inputs.conversation(1).turns[0].call.messages[0].content.endswith("\ns")
    assert not any("prefix cache" in note.text for note in recipe.notes)


async def test_without_it_the_report_says_that_rows_are_sent_again(
    opened: Any, tmp_path: Path
) -> None:
    recipe, _ = await opened(FileInputSpec(path=numbered(tmp_path, 3)))
    assert any("prefix cache" in note.text for note in recipe.notes)


async def test_templates_get_rows_without_a_prompt(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("user,item\n7,8\n")
    _, inputs = await opened(FileInputSpec(path=path), backend=HttpBackendSpec())
    assert inputs.conversation(0).turns[0].call.variables == {"user": "7", "item": "8"}


async def test_embeddings_have_no_turns(opened: Any, tmp_path: Path) -> None:
    spec = FileInputSpec(path=numbered(tmp_path, 3), turns=True)
    with pytest.raises(ConfigError, match="leave out turns"):
        await opened(spec, backend=OpenAIBackendSpec(kind="openai-embeddings"))


@pytest.mark.parametrize(
    ("name", "turns", "shapes"),
    [
        ("prompts.txt", False, [1] * 5),
        ("prompts.csv", False, [1] * 4),
        ("prompts.parquet", False, [1] * 4),
        ("chats.jsonl", False, [1] * 3),
        ("chats.jsonl", True, [2, 2, 2]),
        ("sharegpt.json", True, [2, 1]),
        ("turns.jsonl", False, [3, 3]),
    ],
)
async def test_the_examples_are_read_whole(
    opened: Any, examples: Path, name: str, turns: bool, shapes: list[int]
) -> None:
    recipe, inputs = await opened(FileInputSpec(path=examples / name, turns=turns))
    assert not any("left out" in note.text for note in recipe.notes)
    assert recipe.conversations == len(shapes)
    assert [len(inputs.conversation(n).turns) for n in range(len(shapes))] == shapes

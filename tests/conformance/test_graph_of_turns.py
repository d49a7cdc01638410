"""L6 against a real server: side by side by the server's own log, joined, replayed, with faults."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from itertools import pairwise

import pytest

from headway.core.clock import NS_PER_MS, monotonic_ns
from headway.load import RunSpec, run
from headway.records.run_dir import RunDirectory

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def server(module_sim):
    """Answers after 150 ms, all tokens at once."""
    return module_sim(ttft=0.15, itl=0)


def fan_out(width=4):
    siblings = [
        {"id": f"s{n}", "prompt": f"look up {n}", "after": ["plan"], "output_tokens": 6}
        for n in range(width)
    ]
    join = {"prompt": "join them", "after": [one["id"] for one in siblings], "output_tokens": 2}
    return {"turns": [{"id": "plan", "prompt": "plan", "output_tokens": 5}, *siblings, join]}


def written(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


async def bench(path, server, profile, inputs, **fields):
    spec = RunSpec.model_validate(
        {
            "target": {"url": server.url},
            "profile": profile,
            "inputs": inputs,
            "calibrate": False,
        }
        | fields
    )
    result = await asyncio.wait_for(run(spec, path / "run"), DEADLINE_S)
    conversations = defaultdict(dict)
    for record in RunDirectory(path / "run").records():
        assert record.turn not in conversations[record.index], "a turn ended twice"
        conversations[record.index][record.turn] = record
    return result, conversations


async def test_four_siblings_on_four_slots_overlap_in_the_servers_own_log(tmp_path, server):
    """Trap 31: siblings of a fan-out ran one after another beside free slots."""
    began_ns = monotonic_ns()
    data = written(tmp_path / "agent.jsonl", fan_out())
    _, conversations = await bench(
        tmp_path,
        server,
        {"kind": "concurrent", "streams": [4]},
        {"kind": "file", "path": data},
    )
    turns = conversations[0]
    assert [turns[n].status for n in range(6)] == ["completed"] * 6
    assert len({record.worker for record in turns.values()}) == 1
    lines = await asyncio.to_thread(server.truth, 6, since_ns=began_ns)
    truth = sorted(lines, key=lambda line: line["arrival_ns"])
    siblings = truth[1:5]
    assert max(line["arrival_ns"] for line in siblings) < min(line["end_ns"] for line in siblings)
    assert truth[0]["end_ns"] <= siblings[0]["arrival_ns"]
    assert max(line["end_ns"] for line in siblings) <= truth[5]["arrival_ns"]
    assert turns[5].due_ns == max(turns[n].done_ns for n in range(1, 5))
    answers = 5 + 4 * 6
    assert turns[5].input_tokens > turns[1].input_tokens + answers - 5, "it heard all of them"


async def test_one_slot_carries_a_graph_without_standing_still(tmp_path, server):
    data = written(tmp_path / "agent.jsonl", fan_out(2), fan_out(2))
    _, conversations = await bench(
        tmp_path,
        server,
        {"kind": "synchronous"},
        {"kind": "file", "path": data, "think_time_s": 0.02},
        open_conversations=1,
    )
    records = [record for turns in conversations.values() for record in turns.values()]
    assert [record.status for record in records] == ["completed"] * 8
    spans = sorted((record.sent_ns, record.done_ns) for record in records)
    assert all(done <= sent for (_, done), (sent, _) in pairwise(spans))


async def test_sessions_are_replayed_at_their_times_with_their_gaps(tmp_path, server):
    rows = [
        {
            "timestamp": start,
            "turns": [
                {"id": "plan", "offset_ms": 0, "duration_ms": 500, "input_length": 20},
                {"id": "a", "after": ["plan"], "offset_ms": 540, "duration_ms": 10},
                {"id": "b", "after": ["plan"], "offset_ms": 600, "duration_ms": 10},
                {"id": "end", "after": ["a", "b"], "offset_ms": 640, "duration_ms": 1},
            ],
        }
        for start in (0, 200, 230)
    ]
    _, conversations = await bench(
        tmp_path,
        server,
        {"kind": "trace"},
        {
            "kind": "trace",
            "path": written(tmp_path / "sessions.jsonl", *rows),
            "prompt_tokens": 8,
            "output_tokens": 3,
        },
        workers=2,
    )
    assert [conversations[n][0].due_ns for n in range(3)] == [0, 200 * NS_PER_MS, 230 * NS_PER_MS]
    for turns in conversations.values():
        plan, a, b, end = (turns[n] for n in range(4))
        assert {record.status for record in turns.values()} == {"completed"}
        assert a.due_ns - plan.done_ns == 40 * NS_PER_MS
        assert b.due_ns - plan.done_ns == 100 * NS_PER_MS
        assert end.due_ns - max(a.done_ns, b.done_ns) == 30 * NS_PER_MS
        assert all(record.sent_ns >= record.due_ns for record in turns.values())


async def test_under_random_errors_a_graph_is_whole_in_the_records(tmp_path, module_sim):
    """Every turn has one record; nothing is sent after a turn that failed; branches go on."""
    faulty = module_sim(ttft=0.005, itl=0, fault="error:rate=0.25")
    data = written(tmp_path / "agent.jsonl", fan_out(3))
    _, conversations = await bench(
        tmp_path,
        faulty,
        {"kind": "concurrent", "streams": [6]},
        {"kind": "file", "path": data, "repeat": True},
        limits={"max_requests": 40},
        workers=2,
    )
    assert sorted(conversations) == list(range(40))
    outcomes = set()
    for turns in conversations.values():
        assert sorted(turns) == list(range(5))
        siblings = [turns[n].status for n in (1, 2, 3)]
        if turns[0].status == "errored":
            assert siblings == ["cancelled"] * 3
        else:
            assert set(siblings) <= {"completed", "errored"}, "each of them was sent"
        if set(siblings) == {"completed"}:
            assert turns[4].status in ("completed", "errored")
        else:
            assert (turns[4].status, turns[4].sent_ns) == ("cancelled", None)
        outcomes.add((turns[0].status, turns[4].status))
    assert {("errored", "cancelled"), ("completed", "completed")} <= outcomes

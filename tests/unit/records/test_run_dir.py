from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from headway.core.errors import ConfigError, InputError
from headway.records.record import (
    Failure,
    Note,
    RequestRecord,
    RunEvent,
    StageEnded,
    StageStarted,
    WorkerDied,
    WorkerSample,
)
from headway.records.run_dir import RunDirectory, RunFile

RUN = RunFile(
    run_id="r1", created="2026-11-30T00:00:00Z", seed=3, spec={"target": {"url": "http://t"}}
)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[RunDirectory]:
    directory = RunDirectory.create(tmp_path / "run", RUN)
    yield directory
    directory.close()


def _record(index: int, stage: int = 0) -> RequestRecord:
    return RequestRecord(
        stage=stage, index=index, status="completed", due_ns=index, done_ns=index + 5
    )


def _lines(*records: RequestRecord) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def test_what_is_written_is_read_back(directory: RunDirectory) -> None:
    failure = Failure(
        "http_status", "HTTP 429", status=429, body="slow\ndown\u2028é", retry_after_s=2.0
    )
    records = [
        _record(0),
        RequestRecord(stage=0, index=1, turn=2, status="errored", due_ns=9, failure=failure),
    ]
    directory.append_records(_lines(*records))
    assert list(directory.records()) == records
    assert directory.read_run() == RUN


def test_every_kind_of_event_is_read_back(directory: RunDirectory) -> None:
    events: list[RunEvent] = [
        StageStarted(
            stage=0,
            name="s",
            profile={"kind": "constant"},
            started_wall="2026-11-30T00:00:00Z",
            started_monotonic_ns=5,
            workers=2,
        ),
        WorkerSample(
            stage=0,
            worker=1,
            at_ns=1,
            cpu_s=0.1,
            wall_s=1.0,
            loop_lag_max_ns=7,
            in_flight=2,
            rss_bytes=1,
        ),
        WorkerDied(worker=1, stage=0, cause="signal 9"),
        Note(topic="t", text="x", data={"a": 1}),
        StageEnded(stage=0, at_ns=9, sending_ended_ns=8, reason="max_seconds", offered=4),
    ]
    for event in events:
        directory.append_event(event)
    assert list(directory.events()) == events


def test_a_missing_value_takes_no_space_and_stays_missing(directory: RunDirectory) -> None:
    directory.append_records(_lines(_record(0)))
    (line,) = (directory.path / "records.jsonl").read_bytes().splitlines()
    assert b"null" not in line
    assert b"first_token_ns" not in line
    (record,) = directory.records()
    assert record.first_token_ns is None


def test_a_torn_last_line_is_left_out(directory: RunDirectory) -> None:
    whole = _lines(_record(0), _record(1))
    for cut in range(1, len(_lines(_record(1))) + 1):
        (directory.path / "records.jsonl").write_bytes(whole[:-cut])
        assert [record.index for record in directory.records()] == [0]


def test_a_run_that_goes_on_does_not_glue_its_line_to_a_torn_one(directory: RunDirectory) -> None:
    for torn in (b'{"stage":0,"ind', b"x" * 200_000, b""):
        path = directory.path / "records.jsonl"
        path.write_bytes(_lines(_record(0)) + torn)
        resumed = RunDirectory(directory.path)
        resumed.append_records(_lines(_record(1)))
        resumed.close()
        assert [record.index for record in directory.records()] == [0, 1]


def test_a_file_that_is_one_torn_line_is_begun_anew(directory: RunDirectory) -> None:
    (directory.path / "records.jsonl").write_bytes(b'{"stage":')
    directory.append_records(_lines(_record(4)))
    assert [record.index for record in directory.records()] == [4]


@pytest.mark.parametrize(
    "damage", [b"garbage\n", b'{"stage":0}\n', b"\x00\x00\x00\n", b"\n", b'{"stage":"x"}\n']
)
def test_a_damaged_line_is_an_error_that_names_it(directory: RunDirectory, damage: bytes) -> None:
    (directory.path / "records.jsonl").write_bytes(_lines(_record(0)) + damage + _lines(_record(1)))
    with pytest.raises(InputError, match=r"records\.jsonl is damaged in line 2: "):
        list(directory.records())


def test_an_event_of_an_unknown_kind_is_an_error_that_names_its_line(
    directory: RunDirectory,
) -> None:
    (directory.path / "events.jsonl").write_bytes(b'{"type":"surprise"}\n')
    with pytest.raises(InputError, match=r"events\.jsonl is damaged in line 1: "):
        list(directory.events())


def test_the_records_of_one_stage_can_be_read_alone(directory: RunDirectory) -> None:
    directory.append_records(_lines(_record(0), _record(0, stage=1), _record(1)))
    assert [record.stage for record in directory.records(1)] == [1]


def test_a_directory_without_records_has_none(directory: RunDirectory) -> None:
    assert list(directory.records()) == []
    assert list(directory.events()) == []


def test_a_run_is_never_overwritten(directory: RunDirectory) -> None:
    with pytest.raises(ConfigError, match="already holds a run"):
        RunDirectory.create(directory.path, RUN)


def test_a_directory_that_holds_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not a run directory: it has no run\.json"):
        RunDirectory(tmp_path).read_run()


def test_a_path_that_cannot_be_a_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="cannot make the run directory"):
        RunDirectory.create(tmp_path / "file" / "run", RUN)


def test_run_json_is_replaced_whole(directory: RunDirectory) -> None:
    directory.write_run(msgspec.structs.replace(RUN, calibration={"ttft_p50_s": 0.001}))
    assert directory.read_run().calibration == {"ttft_p50_s": 0.001}
    assert not list(directory.path.glob("*.tmp"))


def test_a_run_json_of_something_else_is_named(directory: RunDirectory) -> None:
    (directory.path / "run.json").write_text('{"seed": "x"}')
    with pytest.raises(ConfigError, match=r"run\.json cannot be read"):
        directory.read_run()


def test_closing_twice_is_fine_and_appending_goes_on_afterwards(directory: RunDirectory) -> None:
    directory.append_records(_lines(_record(0)))
    directory.close()
    directory.close()
    directory.append_records(_lines(_record(1)))
    assert [record.index for record in directory.records()] == [0, 1]

from __future__ import annotations

import json
from pathlib import Path

from headway.sim.truth import Truth, TruthLog


def truth(number: int) -> Truth:
    return Truth(ident=str(number), request_id=None, path="/x", status=200, arrival_ns=number)


def test_lines_are_whole_and_in_order(tmp_path: Path) -> None:
    log = TruthLog(tmp_path / "truth.jsonl")
    for number in range(3):
        log.add(truth(number))
    assert (tmp_path / "truth.jsonl").read_bytes() == b""
    log.close()
    log.close()
    lines = (tmp_path / "truth.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["arrival_ns"] for line in lines] == [0, 1, 2]


def test_a_full_buffer_is_written_without_waiting(tmp_path: Path) -> None:
    log = TruthLog(tmp_path / "truth.jsonl")
    for number in range(8000):
        log.add(truth(number))
    assert (tmp_path / "truth.jsonl").stat().st_size > 1_000_000
    log.close()


def test_without_a_file_nothing_is_kept() -> None:
    log = TruthLog(None)
    log.add(truth(1))
    log.close()

"""Run directories with a known difference, written through the real RunDirectory."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.core.clock import ns_from_s
from headway.records.record import Failure, RequestRecord, StageEnded, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

SPEC: dict[str, Any] = {
    "target": {"url": "http://127.0.0.1:8000", "model": "sim-8b", "transport": "fast"},
    "backend": {"kind": "openai-chat", "stream": True, "extra_body": {}},
    "inputs": {"kind": "synthetic", "unique_prefix": True, "prefix_tokens": 0},
    "profile": {"kind": "constant", "rate": [20.0]},
    "objectives": {"ttft_s": 0.1},
    "warmup_s": 0.0,
    "labels": {},
}
PROVENANCE: dict[str, Any] = {
    "versions": {"headway": "0.1.0"},
    "host": {"name": "bench", "machine": "x86_64", "cpus_available": 2},
    "workload_hash": "w1",
    "workers": 1,
}


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """A factory of runs: `make_run("a", draw=1, slower=1.05)` is 5% slower in TPOT.

    `draw` seeds the noise; `spec` and `provenance` replace fields; `stages` are names.
    """

    def make(
        name: str,
        *,
        draw: int = 1,
        seconds: int = 60,
        slower: float = 1.0,
        error_share: float = 0.0,
        stages: tuple[str, ...] = ("constant 20/s",),
        seed: int = 0,
        spec: dict[str, Any] | None = None,
        provenance: dict[str, Any] | None = None,
        **record: Any,
    ) -> Path:
        run = RunFile(
            run_id=name,
            created="2026-11-30T12:00:00Z",
            seed=seed,
            spec={**SPEC, **(spec or {})},
            provenance={**PROVENANCE, **(provenance or {})},
        )
        directory = RunDirectory.create(tmp_path / name, run)
        for number, stage in enumerate(stages):
            rng = random.Random(f"{draw}/{number}")
            _write_stage(directory, number, stage, seconds, rng, slower, error_share, record)
        directory.close()
        return directory.path

    return make


def _write_stage(
    directory: RunDirectory,
    number: int,
    name: str,
    seconds: int,
    rng: random.Random,
    slower: float,
    error_share: float,
    fields: dict[str, Any],
) -> None:
    profile = {"kind": "constant", "rate": 20.0, "cap": None}
    directory.append_event(
        StageStarted(
            stage=number, name=name, profile=profile, workers=1,
            started_wall="2026-11-30T12:00:00Z", started_monotonic_ns=1,
        )
    )  # fmt: skip
    lines = [
        msgspec.json.encode(_record(number, i, rng, slower, error_share, fields)) + b"\n"
        for i in range(20 * seconds)
    ]
    directory.append_records(b"".join(lines))
    end = ns_from_s(seconds)
    directory.append_event(
        StageEnded(
            stage=number, at_ns=end, sending_ended_ns=end, reason="max_seconds",
            offered=20 * seconds,
        )
    )  # fmt: skip


def _record(
    stage: int,
    index: int,
    rng: random.Random,
    slower: float,
    error_share: float,
    fields: dict[str, Any],
) -> RequestRecord:
    due = ns_from_s(index / 20)
    if rng.random() < error_share:
        failure = Failure("http_status", "HTTP 500", status=500)
        return RequestRecord(
            stage=stage, index=index, status="errored", due_ns=due, sent_ns=due,
            done_ns=due + 1_000_000, failure=failure,
        )  # fmt: skip
    first = due + ns_from_s(0.02 * rng.lognormvariate(0, 0.2))
    last = first + ns_from_s(19 * 0.005 * slower * rng.lognormvariate(0, 0.05))
    known: dict[str, Any] = {
        "stage": stage, "index": index, "status": "completed", "due_ns": due, "sent_ns": due,
        "first_byte_ns": first, "first_token_ns": first, "first_content_ns": first,
        "last_token_ns": last, "done_ns": last, "chunks": 20, "input_tokens": 64,
        "output_tokens": 20, "output_tokens_source": "usage",
    }  # fmt: skip
    return RequestRecord(**{**known, **fields})

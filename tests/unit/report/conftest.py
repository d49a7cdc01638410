"""Run directories with a known truth, written through the real RunDirectory."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.core.clock import ns_from_s
from headway.records.record import (
    Failure,
    RequestRecord,
    RunEvent,
    StageEnded,
    StageStarted,
    WorkerSample,
)
from headway.records.run_dir import RunDirectory, RunFile

SPEC: dict[str, Any] = {
    "target": {"url": "http://127.0.0.1:8000", "model": "sim-8b"},
    "backend": {"kind": "openai-chat"},
    "inputs": {"kind": "synthetic", "unique_prefix": True, "prefix_tokens": 0},
    "objectives": {},
    "labels": {},
}


class RunWriter:
    """Writes stages of made-up requests into a run directory."""

    def __init__(self, path: Path, seed: int = 1, **run: Any) -> None:
        fields = {"run_id": "r-test", "created": "2026-11-30T12:00:00Z", "spec": SPEC, **run}
        self.directory = RunDirectory.create(path, RunFile(seed=seed, **fields))
        self.rng = random.Random(seed)

    def started(self, stage: int = 0, name: str = "constant 50/s", **fields: Any) -> None:
        fields = {"profile": {"kind": "constant", "rate": [50.0]}, "workers": 1, **fields}
        self.event(
            StageStarted(
                stage=stage,
                name=name,
                started_wall="2026-11-30T12:00:00Z",
                started_monotonic_ns=1,
                **fields,
            )
        )

    def ended(self, at_s: float, stage: int = 0, offered: int = 0, **fields: Any) -> None:
        fields = {"reason": "max_seconds", "sending_ended_ns": ns_from_s(at_s), **fields}
        self.event(StageEnded(stage=stage, at_ns=ns_from_s(at_s), offered=offered, **fields))

    def event(self, event: RunEvent) -> None:
        self.directory.append_event(event)

    def records(self, records: Iterable[RequestRecord]) -> None:
        encode = msgspec.json.encode
        self.directory.append_records(b"".join(encode(record) + b"\n" for record in records))

    def samples(self, seconds: int, stage: int = 0, cpu: float = 0.2, lag_s: float = 0.001) -> None:
        for second in range(1, seconds + 1):
            self.event(
                WorkerSample(
                    stage=stage,
                    worker=0,
                    at_ns=ns_from_s(second),
                    cpu_s=cpu,
                    wall_s=1.0,
                    loop_lag_max_ns=ns_from_s(lag_s),
                    in_flight=3,
                    rss_bytes=60 << 20,
                )
            )


def completed(index: int, due_s: float, **fields: Any) -> RequestRecord:
    """A streamed request: TTFT 20 ms, 20 tokens in 20 chunks 5 ms apart, unless told otherwise."""
    times = {"late_s": 0.0, "ttft_s": 0.02, "gap_s": 0.005, "tokens": 20, "tail_s": 0.0}
    times |= {name: fields.pop(name) for name in list(fields) if name in times}
    sent_s = due_s + times["late_s"]
    first_s = sent_s + times["ttft_s"]
    gaps = [ns_from_s(times["gap_s"])] * (int(times["tokens"]) - 1)
    last_ns = ns_from_s(first_s) + sum(gaps)
    record = {
        "stage": 0,
        "status": "completed",
        "sent_ns": ns_from_s(sent_s),
        "first_byte_ns": ns_from_s(first_s),
        "first_token_ns": ns_from_s(first_s),
        "first_content_ns": ns_from_s(first_s),
        "last_token_ns": last_ns,
        "done_ns": last_ns + ns_from_s(times["tail_s"]),
        "chunks": int(times["tokens"]),
        "gaps_ns": gaps or None,
        "input_tokens": 256,
        "output_tokens": int(times["tokens"]),
        "output_tokens_source": "usage",
        "connection_reused": index > 0,
        **fields,
    }
    return RequestRecord(index=index, due_ns=ns_from_s(due_s), **record)


def errored(
    index: int, due_s: float, failure: Failure | None = None, **fields: Any
) -> RequestRecord:
    """A request that got an error status after 3 ms."""
    failure = failure or Failure("http_status", "HTTP 500", status=500, body='{"error": "boom"}')
    record = {
        "stage": 0,
        "sent_ns": ns_from_s(due_s),
        "done_ns": ns_from_s(due_s + 0.003),
        "failure": failure,
        **fields,
    }
    return RequestRecord(index=index, status="errored", due_ns=ns_from_s(due_s), **record)


def never_sent(index: int, due_s: float, **fields: Any) -> RequestRecord:
    """A request that was cancelled while it was queued."""
    record = {"stage": 0, **fields}
    return RequestRecord(index=index, status="cancelled", due_ns=ns_from_s(due_s), **record)


@pytest.fixture
def write_run(tmp_path: Path) -> Iterator[Callable[..., RunWriter]]:
    """A factory of run writers; the first one writes to `tmp_path / "run"`."""
    made: list[RunWriter] = []

    def write(**run: Any) -> RunWriter:
        name = f"run{len(made) + 1}" if made else "run"
        made.append(RunWriter(tmp_path / name, **run))
        return made[-1]

    yield write
    for writer in made:
        writer.directory.close()


@pytest.fixture
def make() -> Any:
    """The record makers, as attributes."""

    class Makers:
        pass

    makers = Makers()
    makers.completed, makers.errored, makers.never_sent = completed, errored, never_sent  # type: ignore[attr-defined]
    return makers


@pytest.fixture
def steady(write_run: Callable[..., RunWriter]) -> Callable[..., RunWriter]:
    """A factory: 20 s at 50 requests/s, everything alike, one stage, ended."""

    def build_steady(rate: int = 50, seconds: int = 20, **run: Any) -> RunWriter:
        writer = write_run(**run)
        writer.started(profile={"kind": "constant", "rate": [float(rate)]})
        writer.records(completed(i, i / rate) for i in range(rate * seconds))
        writer.samples(seconds)
        writer.ended(seconds, offered=rate * seconds)
        return writer

    return build_steady

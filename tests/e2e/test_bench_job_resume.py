"""A load test whose process, or whole server, was killed goes on at the next stage (N6)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from headway import report
from headway.client import Client, Job
from headway.core.clock import monotonic_ns, ns_from_s
from headway.load.spec import RunSpec
from headway.operations.result import BenchResult
from headway.records.run_dir import RunDirectory
from headway.report.files import report_json

WAIT_S = 90.0


def run_of(url: str) -> RunSpec:
    return RunSpec.model_validate(
        {
            "target": {"url": url},
            "inputs": {"kind": "synthetic", "prompt_tokens": 24, "output_tokens": 4},
            "profile": {"kind": "constant", "rate": [20, 30, 40]},
            # Long enough that a stage still goes on when somebody has heard of it.
            "limits": {"max_seconds": 4},
            "calibrate": False,
        }
    )


def until(condition: Callable[[], bool], what: str) -> None:
    deadline_ns = monotonic_ns() + ns_from_s(WAIT_S)
    while not condition():
        assert monotonic_ns() < deadline_ns, f"waited for {what}"
        time.sleep(0.05)


def wait_for_stage(client: Client, job: Job, stage: int) -> None:
    def is_there() -> bool:
        now = client.get(job.id)
        assert not now.is_ended, now.error
        numbers = now.progress.numbers if now.progress else {}
        return numbers.get("stage") == stage and numbers["completed"] > 0

    until(is_there, f"stage {stage}")


def job_process(server: Any, job: Job) -> psutil.Process:
    [found] = [each for each in server.tree() if job.id in " ".join(each.cmdline())]
    return found


@pytest.mark.parametrize("killed", ["the job's process", "everything"])
def test_the_run_goes_on_and_the_broken_stage_stays_partial(
    start_server: Any, sim: Any, tmp_path: Any, killed: str
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    server = start_server()
    with server.client() as client:
        job = client.submit("bench", run_of(target.url))
        wait_for_stage(client, job, 1)
        records = server.state_dir / "work" / job.id / "1" / "run" / "records.jsonl"
        if killed == "everything":
            tree = server.tree()
            for process in tree:
                process.kill()
            server.wait()
            psutil.wait_procs(tree, timeout=10)
            broken = records.read_text().splitlines()
            server = start_server(port=server.port)
        else:
            job_process(server, job).send_signal(signal.SIGKILL)
            broken = None
        result = client.result(job.id, BenchResult, timeout_s=WAIT_S)
        ended = client.get(job.id)
        client.download(job.id, "records.jsonl", tmp_path / "records.jsonl")
        for name in ("run.json", "events.jsonl", "report.json"):
            client.download(job.id, name, tmp_path / name)
    assert (ended.attempt, ended.crashes) == (2, 1)
    assert result.outcome == "completed"
    assert result.resumed == 1
    assert [(stage.stage, stage.name, stage.partial) for stage in result.stages] == [
        (0, "constant 20/s", False), (1, "constant 30/s", True), (2, "constant 40/s", False),
    ]  # fmt: skip
    assert (result.stages[0].completed, result.stages[2].completed) == (80, 160)
    if broken is not None:
        after = (tmp_path / "records.jsonl").read_text().splitlines()
        assert after[: len(broken)] == broken, "what had been measured is kept as it was"
        assert {line for line in after[len(broken) :] if '"stage":1' in line} == set()
    rebuilt = report.build(RunDirectory(tmp_path))
    assert (tmp_path / "report.json").read_bytes() == report_json(rebuilt)
    directories = [path.name for path in (server.state_dir / "work" / job.id).iterdir()]
    assert directories == ["2"], "the first attempt's copy is gone"


def test_a_drained_run_is_given_back_and_goes_on_behind_its_interrupted_stage(
    start_server: Any, sim: Any
) -> None:
    """J18: a drained attempt does not count; what it had measured does."""
    target = sim(ttft=0.005, itl=0.001)
    server = start_server("--drain-s", "0")
    with server.client() as client:
        job = client.submit("bench", run_of(target.url))
        wait_for_stage(client, job, 1)
        server.signal(signal.SIGTERM)
        assert server.wait(WAIT_S) == 0
        server = start_server(port=server.port)
        result = client.result(job.id, BenchResult, timeout_s=WAIT_S)
        ended = client.get(job.id)
    assert (ended.attempt, ended.released, ended.crashes) == (2, 1, 0)
    assert [stage.partial for stage in result.stages] == [False, True, False]

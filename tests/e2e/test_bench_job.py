"""A load test as a job of a server: the same command, directory, table and exit codes (N4, N5)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.client import Client, Job
from headway.core.clock import monotonic_ns, ns_from_s
from headway.core.states import JobState
from headway.operations.bench_run import ARTIFACTS
from headway.operations.result import BenchResult

SHORT = ("--output", "4", "--no-calibrate")
WAIT_S = 60.0


@dataclass
class Command:
    """A `headway bench` that was begun."""

    process: subprocess.Popen[str]
    errors: Path

    @property
    def said(self) -> str:
        """What it has written to standard error until now."""
        return self.errors.read_text()

    def ended(self) -> tuple[int, str]:
        """Its exit code and standard output, once it has ended."""
        printed, _ = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, printed


def bench(server: Any, url: str, run_dir: Path, *flags: str) -> Command:
    """Begin `headway bench` against the server."""
    errors = run_dir.with_name(f"{run_dir.name}.err")
    with errors.open("w") as stderr:
        process = subprocess.Popen(
            [
                sys.executable, "-m", "headway.cli.main", "bench", url, *SHORT, *flags,
                "--run-dir", str(run_dir),
            ],
            env=server.environ, text=True, stdout=subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
    return Command(process, errors)


def until(condition: Callable[[], Any], what: str) -> Any:
    """What the condition gives, as soon as it gives something."""
    deadline_ns = monotonic_ns() + ns_from_s(WAIT_S)
    while not (value := condition()):
        assert monotonic_ns() < deadline_ns, f"waited for {what}"
        time.sleep(0.05)
    return value


def jobs_of(client: Client, url: str) -> list[Job]:
    key = f"target {url.replace('127.0.0.1', 'localhost')}"
    return [job for job in client.list(operation="bench").jobs if job.concurrency_key == key]


def in_stage(client: Client, job_id: str, stage: int) -> Callable[[], bool]:
    """Whether the job sends the requests of that stage and some have come back."""

    def look() -> bool:
        progress = client.get(job_id).progress
        if progress is None or progress.numbers.get("stage") != stage:
            return False
        return progress.numbers["completed"] > 0

    return look


def test_a_run_on_a_server_ends_like_one_that_took_place_here(
    server: Any, sim: Any, tmp_path: Path
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    here = tmp_path / "here"
    ran = bench(server, target.url, here, "--rate", "80", "--max-seconds", "2.5s", "--json")
    code, printed = ran.ended()
    assert code in (0, 5), ran.said
    report = json.loads((here / "report.json").read_text())
    assert (code == 0) == (report["verdict"] == "VALID")
    assert json.loads(printed) == report
    assert "stage 1 (poisson 80/s):" in ran.said
    with server.client() as client:
        [job] = jobs_of(client, target.url)
        result = client.result(job.id, BenchResult)
    assert result.verdict == report["verdict"]
    records = map(json.loads, (here / "records.jsonl").read_text().splitlines())
    assert result.completed == sum(record["status"] == "completed" for record in records)
    assert [stage.name for stage in result.stages] == ["poisson 80/s"]
    there = server.state_dir / "work" / job.id / "1" / "run"
    fetched = {path.name: path.read_bytes() for path in here.iterdir()}
    assert fetched.keys() <= set(ARTIFACTS)
    assert fetched == {name: (there / name).read_bytes() for name in fetched}
    # An artifact is the same file, not a copy: records can have gigabytes.
    assert (there / "records.jsonl").stat().st_nlink == 2


def test_two_people_at_one_target_run_one_after_the_other(
    server: Any, sim: Any, tmp_path: Path
) -> None:
    """N5, N12, trap 53: the second sees who is before it and when it will run."""
    target = sim(ttft=0.005, itl=0.001)
    first = bench(server, target.url, tmp_path / "a", "--rate", "20", "--max-seconds", "60s")
    with server.client() as client:
        [holder] = until(lambda: jobs_of(client, target.url), "the first job")
        until(in_stage(client, holder.id, 0), "the first run")
        # Written otherwise, it is the same target.
        other = target.url.replace("127.0.0.1", "localhost")
        second = bench(server, other, tmp_path / "b", "--rate", "20", "--max-seconds", "1s")
        until(lambda: "by estimate" in second.said, "the second to see when it will run")
        assert f"number 1 in line for 'target {other}', which is held by {holder.id}" in second.said
        [waiting] = [job for job in jobs_of(client, target.url) if job.id != holder.id]
        why = client.why(waiting.id)
        assert (why.reason, why.holders, why.position) == ("locked", [holder.id], 1)
        client.cancel(holder.id)
        assert first.ended()[0] == 11, first.said
        assert second.ended()[0] in (0, 5), second.said
        held, waited = client.get(holder.id), client.get(waiting.id)
    assert held.ended_at is not None
    assert waited.started_at is not None
    assert waited.started_at >= held.ended_at
    assert (tmp_path / "b" / "report.html").exists()


def test_a_cancelled_run_stops_at_once_and_leaves_a_partial_report(
    server: Any, sim: Any, tmp_path: Path
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    here = tmp_path / "here"
    ran = bench(server, target.url, here, "--rate", "40,40", "--max-seconds", "60s")
    with server.client() as client:
        [job] = until(lambda: jobs_of(client, target.url), "the job")
        until(in_stage(client, job.id, 0), "the run")
        workers = [each for each in server.tree() if _is_load_worker(each)]
        assert workers, "load workers belong to the job's process tree"
        client.cancel(job.id)
        code, _ = ran.ended()
        ended = client.get(job.id)
        events = {event.kind: event.detail for event in client.events(job.id)}
    assert ended.state is JobState.CANCELLED
    assert code == 11, ran.said
    _, alive = psutil.wait_procs(workers, timeout=10)
    assert not alive, "no load worker outlives its job"
    assert events["killed"]["obeyed"], "it stopped by itself within the grace period"
    report = json.loads((here / "report.json").read_text())
    assert [stage["partial"] for stage in report["stages"]] == [True]
    assert report["stages"][0]["counts"]["completed"] > 0
    assert report["stages"][0]["window"]["end_s"] < 55


def _is_load_worker(process: psutil.Process) -> bool:
    try:
        return "headway load worker" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def test_ctrl_c_leaves_the_run_and_attach_comes_back(server: Any, sim: Any, tmp_path: Path) -> None:
    """J21, trap 25."""
    target = sim(ttft=0.005, itl=0.001)
    ran = bench(server, target.url, tmp_path / "a", "--rate", "40", "--max-seconds", "15s")
    with server.client() as client:
        [job] = until(lambda: jobs_of(client, target.url), "the job")
        until(in_stage(client, job.id, 0), "the run")
        ran.process.send_signal(signal.SIGINT)
        assert ran.ended()[0] == 130
        assert f"headway bench --attach {job.id}" in ran.said
        assert f"headway jobs wait {job.id}" in ran.said
        assert not client.get(job.id).is_ended
    back = server.headway("bench", "--attach", job.id[:12], "--run-dir", str(tmp_path / "b"))
    assert back.returncode in (0, 5), back.stderr
    assert "poisson 40/s" in back.stdout
    assert (tmp_path / "b" / "report.html").exists()


def test_files_are_the_servers_own_and_missing_ones_are_refused_at_submission(
    server: Any, sim: Any, tmp_path: Path
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    missing = bench(
        server, target.url, tmp_path / "a", "--streams", "2", "--data", str(tmp_path / "no.txt")
    )
    assert missing.ended()[0] == 2
    assert f"the server has no file {tmp_path / 'no.txt'}" in missing.said
    assert not (tmp_path / "a").exists()
    (tmp_path / "prompts.txt").write_text("one\ntwo\nthree\n")
    command = [
        sys.executable, "-m", "headway.cli.main", "bench", target.url, "--streams", "2", "--data",
        "prompts.txt", "--output", "4", "--no-calibrate", "--run-dir", str(tmp_path / "b"),
    ]  # fmt: skip
    read = subprocess.run(
        command, env=server.environ, cwd=tmp_path, text=True, capture_output=True,
        timeout=WAIT_S, check=False,
    )  # fmt: skip
    assert read.returncode in (0, 5), read.stderr
    assert len((tmp_path / "b" / "records.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("flags", "code", "sentence"),
    [
        (("--api-key-env", "NO_SUCH_KEY"), 2, "environment variable NO_SUCH_KEY is not set"),
        (("--model", "another", "--target-wait", "0s"), 3, "another"),
    ],
)
def test_a_run_that_cannot_begin_ends_with_the_code_of_a_local_one(
    server: Any, sim: Any, tmp_path: Path, flags: tuple[str, ...], code: int, sentence: str
) -> None:
    target = sim(ttft=0.005, itl=0.001)
    remote = bench(server, target.url, tmp_path / "a", "--rate", "5", *flags)
    local = bench(server, target.url, tmp_path / "b", "--rate", "5", "--local", *flags)
    assert remote.ended()[0] == code, remote.said
    assert local.ended()[0] == code, local.said
    assert sentence in remote.said
    assert sentence in local.said


def test_a_target_that_is_not_there_yet_is_waited_for(
    server: Any, sim: Any, tmp_path: Path
) -> None:
    """J9: a server that loads its model for ten minutes is normal."""
    target = sim(ttft=0.005, itl=0.001)
    target.stop()
    ran = bench(server, target.url, tmp_path / "a", "--streams", "2", "--max-requests", "10")
    with server.client() as client:
        [job] = until(lambda: jobs_of(client, target.url), "the job")
        until(lambda: "does not answer" in client.why(job.id).text, "the reason")
        assert client.get(job.id).wait_reason == "precondition"
        until(lambda: "does not answer" in ran.said, "the reason on the screen")
        sim(ttft=0.005, itl=0.001, port=target.port)
        assert ran.ended()[0] in (0, 5), ran.said


def test_a_key_is_named_and_read_by_the_server_alone(
    start_server: Any, sim: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """J10: the operator says which variables jobs may read; no key is stored anywhere."""
    monkeypatch.setenv("TEAM_KEY", "k-4711-secret")
    target = sim(ttft=0.005, itl=0.001, api_key="k-4711-secret")
    config = tmp_path / "server.yaml"
    config.write_text("env_inherited: [TEAM_KEY]\n")
    server = start_server("--config", str(config))
    monkeypatch.delenv("TEAM_KEY")
    load = ("--streams", "2", "--max-requests", "10", "--api-key-env", "TEAM_KEY")
    ran = bench(server, target.url, tmp_path / "run", *load)
    assert ran.ended()[0] in (0, 5), ran.said
    kept = [*(tmp_path / "run").rglob("*"), *server.state_dir.rglob("*"), server.log_path]
    files = [path for path in kept if path.is_file()]
    assert len(files) > 10
    assert not [path for path in files if b"k-4711-secret" in path.read_bytes()]

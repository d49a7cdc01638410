"""`headway worker` beside a server: more slots, and a death or a stop of its own (J15, J18)."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest
from accounting import wait_until
from fault_server import dead, stop_within_a_write, submit, until_printed
from job_servers import JobServer, StartServer
from prometheus_client.parser import text_string_to_metric_families

OPERATIONS = Path(__file__).parent / "engine_ops.py"


@pytest.fixture(scope="module")
def server(start_module_server: StartServer) -> JobServer:
    lanes = ("--long", "1+0", "--short", "1+0", "--no-bench")
    return start_module_server(*lanes, operations=OPERATIONS)


@dataclass(frozen=True)
class SecondWorker:
    """A `headway worker` and the process that it keeps."""

    keeper: subprocess.Popen[str]
    said: str
    log_path: Path

    @property
    def name(self) -> str:
        return f"worker-{self.keeper.pid}"

    @property
    def worker(self) -> int:
        return psutil.Process(self.keeper.pid).children()[0].pid

    def log(self) -> str:
        return self.log_path.read_text()


@contextmanager
def second_worker(server: JobServer, directory: Path, config: str = "") -> Iterator[SecondWorker]:
    """With two slots in each lane."""
    config_path, log_path = directory / "worker.yaml", directory / "worker.log"
    config_path.write_text(config)
    with log_path.open("w") as log:
        keeper = subprocess.Popen(
            [
                sys.executable, "-m", "headway.cli.main", "worker", "--no-bench",
                "--operations", str(OPERATIONS), "--state-dir", str(server.state_dir),
                "--long", "2+0", "--short", "2+0", "--config", str(config_path),
            ],
            stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
    try:
        yield SecondWorker(keeper, line_of(keeper), log_path)
    finally:
        if keeper.poll() is None:
            keeper.terminate()
        keeper.communicate(timeout=60)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        assert selector.select(60), "it did not say that it is ready"
    return process.stdout.readline()


def value(server: JobServer, name: str, **labels: str) -> float | None:
    """A sample of the server's page of metrics."""
    text = httpx.get(f"{server.url}/metrics", timeout=30).text
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return None


def until_value(server: JobServer, name: str, wanted: float, **labels: str) -> None:
    """A worker that is too busy to answer in time is left out of a page."""
    wait_until(
        lambda: value(server, name, **labels) == wanted,
        60,
        lambda: f"{name} is {value(server, name, **labels)}",
    )


def test_it_runs_jobs_shows_in_the_servers_metrics_and_drains(
    server: JobServer, tmp_path: Path
) -> None:
    """J15, J18: one endpoint tells all; SIGTERM lets what runs finish."""
    with server.client() as client, second_worker(server, tmp_path) as second:
        assert "3 database connections" in second.said
        go = tmp_path / "go"
        jobs = submit(client, "until_file", 3, path=str(go))
        for job in jobs:
            until_printed(client, job)  # all three at a time: the server alone has one slot
        until_used = partial(until_value, server, "headway_lane_slots", lane="long", kind="used")
        until_used(2.0, process=second.name)
        until_used(1.0, process="worker")
        until_value(server, "headway_workers", 2.0)
        second.keeper.terminate()
        wait_until(lambda: "stopping" in second.log(), 60, lambda: "it does not drain")
        go.touch()
        assert second.keeper.wait(60) == 0
        ended = [client.wait(job, timeout_s=60) for job in jobs]
        assert [(job.outcome, job.attempt) for job in ended] == [("succeeded", 1)] * 3
        until_value(server, "headway_workers", 1.0)


def test_what_it_ran_is_rescued_when_all_of_it_is_killed(server: JobServer, tmp_path: Path) -> None:
    """At once, by the server's own worker: the owner is seen to be dead."""
    with server.client() as client, second_worker(server, tmp_path) as second:
        go = tmp_path / "go"
        jobs = submit(client, "until_file", 3, path=str(go))
        pids = [until_printed(client, job)[0] for job in jobs]
        processes = psutil.Process(second.worker).children(recursive=True)
        its = {pid for pid in pids if pid in {each.pid for each in processes}}
        for pid in (second.keeper.pid, second.worker):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: all(map(dead, its)), 60, lambda: f"its jobs live: {its}")
        go.touch()
        ended = [client.wait(job, timeout_s=60) for job in jobs]
    assert [job.outcome for job in ended] == ["succeeded"] * 3
    assert sorted(job.attempt for job in ended) == [1, 2, 2]


def test_it_is_replaced_when_it_stops_within_a_write(server: JobServer, tmp_path: Path) -> None:
    """Its keeper ends it, so that the server's writes get through; then it has another."""
    config = "lease_s: 1\nworker_patience_s: 3\n"
    with server.client() as client, second_worker(server, tmp_path, config) as second:
        jobs = submit(client, "work", 3, seconds=60) + submit(client, "quick", 50)
        for job in jobs[:3]:
            until_printed(client, job)
        worker = second.worker
        stop_within_a_write(server, worker)
        jobs += submit(client, "quick", 5)
        wait_until(lambda: dead(worker), 30, lambda: "the stopped worker is still there")
        assert "no sign of life" in second.log()
        for job in jobs[3:]:
            assert client.wait(job, timeout_s=60).outcome == "succeeded"
        for job in jobs[:3]:
            client.cancel(job)
            client.wait(job, timeout_s=60)


def test_it_says_why_it_cannot_work(server: JobServer, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "headway.cli.main", "worker", "--no-bench", "--operations",
        "nothing_of_this_name", "--state-dir", str(server.state_dir),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "nothing_of_this_name" in done.stderr

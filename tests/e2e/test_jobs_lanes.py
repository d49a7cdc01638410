"""What the lanes of a real server do, and what its own output looks like (J1, J3)."""

from __future__ import annotations

from pathlib import Path

from accounting import assert_everything_accounted_for, query
from fault_server import start, submit, until_printed
from job_servers import StartServer

PETABYTE = 10**15


def most_at_once(state_dir: Path) -> int:
    """How many attempts ran at one time, at the most."""
    spans = query(state_dir, "SELECT started_at_us, ended_at_us FROM attempts")
    return max(sum(a <= begin < b for a, b in spans) for begin, _ in spans)


def test_burst_slots_are_refused_while_memory_is_short(
    start_server: StartServer, tmp_path: Path
) -> None:
    """J1: and the guaranteed one goes on working. The sizes that were asked for are printed."""
    config = tmp_path / "serve.yaml"
    config.write_text(f"burst_reserve_bytes: {PETABYTE}\n")
    server = start(start_server, "--long", "1+3", "--config", str(config))
    with server.client() as client:
        jobs = submit(client, "work", 4, seconds=0.3)
    assert_everything_accounted_for(server, jobs)
    assert most_at_once(server.state_dir) == 1
    assert any("long 1 guaranteed + 3 burst" in line["message"] for line in server.log())


def test_burst_slots_are_used_while_memory_is_there(
    start_server: StartServer, tmp_path: Path
) -> None:
    """J1, trap 9: a waiting job takes the first slot, of either kind."""
    config = tmp_path / "serve.yaml"
    config.write_text("burst_reserve_bytes: 0\nburst_job_bytes: 1048576\n")
    server = start(start_server, "--long", "1+1", "--config", str(config))
    with server.client() as client:
        go = tmp_path / "go"
        first, second, third = submit(client, "until_file", 3, path=str(go))
        until_printed(client, first)
        until_printed(client, second)
        assert client.why(third).reason == "queued"
        go.touch()
    assert_everything_accounted_for(server, [first, second, third])
    assert most_at_once(server.state_dir) == 2


def test_the_output_of_jobs_never_shows_in_the_servers_own(start_server: StartServer) -> None:
    """J3: also not when an attempt's process is killed in the middle of printing."""
    server = start_server("--no-bench", operations=Path(__file__).parent / "jobs_ops.py")
    with server.client() as client:
        job = client.submit("crash_once").id
        assert client.wait(job, timeout_s=60).attempt == 2
        said = client.run("talk", {"lines": 3})
        assert said == {"lines": 3}
    assert server.process.stdout is not None
    server.process.terminate()
    assert server.wait() == 0
    assert server.process.stdout.read() == b"", "one line when it was ready, and no more"
    messages = [line["message"] for line in server.log()]  # each line is JSON of the server's own
    assert messages
    assert not any("attempt 1\n" in each or each.startswith("line ") for each in messages)

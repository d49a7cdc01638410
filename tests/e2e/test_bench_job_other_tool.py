"""Another load tool as a job: the example that operators may enable."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.client import InvalidRequest, JobFailed, LogChunk
from headway.core.states import JobState

EXAMPLE = Path(__file__).parents[2] / "examples" / "other_tool.py"
TOOL = """#!{python}
import pathlib, signal, subprocess, sys, time
results = pathlib.Path(sys.argv[2])
(results / "deep").mkdir()
def stop(number, frame):
    (results / "partial.json").write_text('{{"requests": 3}}')
    print("stopped", flush=True)
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
subprocess.Popen(["sleep", "600"], start_new_session=True)
print("\\033[32mtarget\\033[0m", sys.argv[1], flush=True)
if sys.argv[3] == "hang":
    time.sleep(600)
(results / "deep" / "results.json").write_text('{{"requests": 9}}')
sys.exit(int(sys.argv[3]))
"""


@pytest.fixture
def tool_server(start_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server with the example, on a host where `oha` is a script of ours."""
    programs = tmp_path / "bin"
    programs.mkdir()
    tool = programs / "oha"
    tool.write_text(TOOL.format(python=sys.executable))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return start_server(operations=EXAMPLE)


def asked(url: str, end: str, tool: str = "oha") -> dict[str, Any]:
    return {"tool": tool, "target": url, "arguments": ["{target}", "{results}", end]}


def test_its_output_is_the_log_and_its_files_are_artifacts(tool_server: Any, sim: Any) -> None:
    target = sim(ttft=0.005)
    with tool_server.client() as client:
        job = client.submit("other_tool", asked(target.url, "0"))
        result = client.result(job.id, timeout_s=60)
        log = "".join(client.logs(job.id))
        content = client.artifact(job.id, "deep/results.json")
        left = [each for each in tool_server.tree() if "sleep" in each.name()]
        with pytest.raises(JobFailed, match="oha ended with exit code 7"):
            client.run("other_tool", asked(target.url, "7"), timeout_s=60)
    assert result == {"exit_code": 0, "files": ["deep/results.json"]}
    assert content == b'{"requests": 9}'
    assert f"\x1b[32mtarget\x1b[0m {target.url}" in log
    assert left == [], "what it leaves running dies with the job"


def test_a_cancelled_tool_may_write_what_it_has(tool_server: Any, sim: Any) -> None:
    target = sim(ttft=0.005)
    with tool_server.client() as client:
        job = client.submit("other_tool", asked(target.url, "hang"))
        # The same key as Headway's own runs: neither measures the other.
        assert job.concurrency_key == f"target {target.url.replace('127.0.0.1', 'localhost')}"
        text = ""
        for said in client.follow(job.id):
            if isinstance(said, LogChunk):
                text += said.text
                if "target" in text.rpartition("$")[2].partition("\n")[2]:
                    client.cancel(job.id)
        ended = client.get(job.id)
        assert ended.state is JobState.CANCELLED
        assert client.artifact(job.id, "partial.json") == b'{"requests": 3}'
        assert "stopped" in "".join(client.logs(job.id))


def test_what_the_operator_did_not_allow_is_refused_when_it_is_submitted(tool_server: Any) -> None:
    with tool_server.client() as client:
        with pytest.raises(InvalidRequest, match="this server runs no 'sh'; it runs"):
            client.submit("other_tool", asked("http://127.0.0.1:1", "0", tool="sh"))
        with pytest.raises(InvalidRequest, match="vllm is not installed on this server"):
            client.submit("other_tool", asked("http://127.0.0.1:1", "0", tool="vllm"))


def test_it_is_off_by_default(server: Any) -> None:
    with server.client() as client:
        assert "other_tool" not in {each.name for each in client.operations()}
        assert "bench" in {each.name for each in client.operations()}

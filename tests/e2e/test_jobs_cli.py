"""The command line against a real server: words, JSON, exit codes, Ctrl-C (J21, trap 25)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.cli.exit_codes import ExitCode
from headway.client import LogChunk


def submit(server: Any, *arguments: str) -> str:
    done = server.headway("submit", *arguments)
    assert done.returncode == 0, done.stderr
    return str(done.stdout.strip())


def test_submit_and_wait_shows_output_and_result(server: Any) -> None:
    done = server.headway("submit", "talk", "lines=2", "--wait")
    assert done.returncode == ExitCode.OK
    assert done.stdout == 'line 0\nline 1\n{\n  "lines": 2\n}\n'
    assert "succeeded" in done.stderr


def test_json_output_is_one_document_beside_the_jobs_words(server: Any) -> None:
    done = server.headway("submit", "talk", "lines:=2", "--wait", "--output", "json")
    assert json.loads(done.stdout)["state"] == "SUCCEEDED"
    assert "line 1" in done.stderr


@pytest.mark.parametrize("command", [("submit", "--json", "echo"), ("submit", "echo", "--json")])
def test_json_is_short_for_output_json(server: Any, command: tuple[str, ...]) -> None:
    assert json.loads(server.headway(*command).stdout)["operation"] == "echo"


def test_the_operations_of_a_server_are_listed_with_the_fields_of_their_input(server: Any) -> None:
    listed = server.headway("operations").stdout.splitlines()
    talk = next(line for line in listed if line.startswith("talk "))
    assert "lines" in talk
    assert "pause_s" in talk
    names = [each["name"] for each in json.loads(server.headway("operations", "--json").stdout)]
    assert "talk" in names


def test_a_list_shows_how_far_a_job_is_and_leaves_its_numbers_to_show(server: Any) -> None:
    job_id = submit(server, "train")
    with server.client() as client:
        states = (said for said in client.follow(job_id) if not isinstance(said, LogChunk))
        next(job for job in states if job.progress is not None)
    listed = server.headway("jobs", "list", "--operation", "train").stdout
    shown = server.headway("jobs", "show", job_id).stdout
    server.headway("jobs", "cancel", job_id)
    assert "running 50% epoch 1" in listed
    assert "loss=0.25" not in listed
    assert "loss=0.25" in shown


def test_input_from_a_file_with_fields_over_it(server: Any, tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"lines": 9, "pause_s": 0}')
    path = f"@{tmp_path / 'in.json'}"
    job_id = submit(server, "talk", "--json-input", path, "lines=1", "--label", "team=cli")
    done = server.headway("jobs", "wait", job_id, "--output", "json")
    assert json.loads(done.stdout)["labels"] == {"team": "cli"}
    assert server.headway("jobs", "logs", job_id).stdout == "line 0\n"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("submit", "fail", "--wait"), ExitCode.JOB_FAILED, "no luck"),
        (("submit", "nope"), ExitCode.NOT_FOUND, "no operation 'nope'"),
        (("submit", "talk", "lines=many"), ExitCode.USAGE, "input.lines"),
        (("submit", "talk", "lines"), ExitCode.USAGE, "not KEY=TEXT"),
        (("submit", "talk", "--json-input", "[1]"), ExitCode.USAGE, "must be a JSON object"),
        (("submit", "echo", f"text:={'[' * 300}{']' * 300}"), ExitCode.USAGE, "200 levels"),
        (("submit", "echo", f"text:={'[' * 5000}{']' * 5000}"), ExitCode.USAGE, "200 levels"),
        (("submit", "talk", "--env", "LD_PRELOAD=x"), ExitCode.USAGE, "LD_PRELOAD"),
        (("submit", "echo", "txet=2"), ExitCode.USAGE, "input.txet: there is no such field"),
        (("submit", "talk", "--delay-s", "1e300"), ExitCode.USAGE, "beyond the calendar"),
        (("submit", "talk", "--idempotency-key", "ä"), ExitCode.USAGE, "printable ASCII"),
        (("submit", "talk", "--priority", "9999"), ExitCode.USAGE, "priority: Input should"),
        (("jobs", "list", "--label", "team"), ExitCode.USAGE, "not NAME=TEXT"),
        (("jobs", "cancel", ""), ExitCode.USAGE, "the id of the job is empty"),
        (("admin", "users", "add", "Ann"), ExitCode.USAGE, "small letters, digits"),
        (("admin", "workspaces", "add", "a b"), ExitCode.USAGE, "small letters, digits"),
        (("admin", "tokens", "issue", ""), ExitCode.USAGE, "label: a name"),
        (("admin", "tokens", "issue-service", "lab", "A"), ExitCode.USAGE, "label: a name"),
        (("admin", "tokens", "issue", "a", "--days", "99999"), ExitCode.USAGE, "not in the range"),
        (("admin", "limits", "set", "default", "--weight", "5000"), ExitCode.USAGE, "weight: "),
        (("admin", "limits", "lock", ""), ExitCode.USAGE, "name: String should"),
        (("jobs", "show", "zzz"), ExitCode.NOT_FOUND, "there is no job"),
        (("jobs", "show", "zzz", "--server", "http://127.0.0.1:9"), ExitCode.SERVER_UNREACHABLE,
         "does not answer"),
        (("jobs", "show", "zzz", "--server", "nonsense"), ExitCode.USAGE, "not a server address"),
    ],
)  # fmt: skip
def test_exit_codes_tell_what_went_wrong(
    server: Any, arguments: tuple[str, ...], code: ExitCode, words: str
) -> None:
    done = server.headway(*arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cancel_that_came_too_late_says_so(server: Any) -> None:
    job_id = submit(server, "echo")
    server.headway("jobs", "wait", job_id)
    done = server.headway("jobs", "cancel", job_id)
    assert done.stdout == f"Job {job_id} had ended before: succeeded.\n"


def test_cancelled_and_timed_out_waiting_have_their_own_exit_codes(server: Any) -> None:
    job_id = submit(server, "sleep")
    assert server.headway("jobs", "wait", job_id, "--timeout-s", "0.2").returncode == (
        ExitCode.TIMED_OUT_WAITING
    )
    done = server.headway("jobs", "cancel", job_id)
    assert done.returncode == ExitCode.OK
    assert "asked to stop" in done.stdout or "cancelled" in done.stdout
    assert server.headway("jobs", "wait", job_id).returncode == ExitCode.JOB_CANCELLED
    assert server.headway("jobs", "result", job_id).returncode == ExitCode.JOB_CANCELLED


def test_jobs_are_listed_shown_explained_and_told(server: Any) -> None:
    job_id = submit(server, "again", "--label", "kind=told")
    server.headway("jobs", "wait", job_id)
    listed = server.headway("jobs", "list", "--label", "kind=told", "--state", "succeeded")
    assert listed.stdout.splitlines()[1].startswith(job_id)
    assert "again" in server.headway("jobs", "show", job_id[:12]).stdout
    assert "ended" in server.headway("jobs", "why", job_id).stdout
    assert "not yet" in server.headway("jobs", "events", job_id).stdout
    assert "report.txt" in server.headway("jobs", "artifacts", job_id).stdout
    fetched = server.headway("jobs", "artifacts", job_id, "--get", "report.txt")
    assert fetched.stdout == "all good\n"
    assert server.headway("jobs", "result", job_id).stdout == "2\n"
    retried = server.headway("jobs", "retry", job_id).stdout.strip()
    assert retried != job_id
    page = server.headway("jobs", "list", "--mine", "--limit", "1", "--output", "json")
    assert json.loads(page.stdout)["jobs"][0]["id"] == retried


def test_ctrl_c_leaves_the_job_and_says_how_to_come_back(server: Any) -> None:
    """Trap 25: the client used to leave the job running without saying so."""
    command = [sys.executable, "-m", "headway.cli.main", "submit", "sleep", "--wait"]
    with subprocess.Popen(
        command, env=server.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("process ")
        process.send_signal(signal.SIGINT)
        _, words = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    resume = next(line for line in words.splitlines() if "come back:" in line)
    arguments = resume.split("headway ")[1].split()
    assert arguments[:2] == ["jobs", "logs"]
    job_id = arguments[2]
    with server.client() as client:
        assert not client.get(job_id).is_ended
        client.cancel(job_id)
    back = server.headway(*arguments)
    assert back.returncode == 0
    assert back.stdout == "", "what was seen before is not shown again"


def test_completion_offers_operations_and_job_ids(server: Any) -> None:
    job_id = submit(server, "echo")
    environ = {**server.environ, "_HEADWAY_COMPLETE": "bash_complete"}

    def complete(words: str, at: int) -> str:
        env = environ | {"COMP_WORDS": words, "COMP_CWORD": str(at)}
        command = [sys.executable, "-c", "from headway.cli.commands import headway; "
                   "headway(prog_name='headway')"]  # fmt: skip
        return subprocess.run(
            command, env=env, text=True, capture_output=True, timeout=60, check=False
        ).stdout

    assert "talk" in complete("headway submit ta", 2)
    assert job_id in complete(f"headway jobs show {job_id[:6]}", 3)
    environ["HEADWAY_SERVER"] = "http://127.0.0.1:9"
    assert complete("headway submit ta", 2).strip() == ""


def test_help_loads_neither_the_server_nor_the_client() -> None:
    """P8: `headway --help` stays light; so do the helps of these commands."""
    code = (
        "import sys\nfrom headway.cli.commands import headway\n"
        "headway(sys.argv[1:], standalone_mode=False)\n"
        "heavy = {'fastapi', 'httpx', 'uvicorn', 'sqlalchemy', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    for command in ((), ("submit",), ("jobs", "list"), ("serve",), ("worker",)):
        done = subprocess.run(
            [sys.executable, "-c", code, *command, "--help"],
            env=dict(os.environ), text=True, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

"""How the command line ends when something is not as it must be: a sentence, and an exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headway.cli.exit_codes import ExitCode


def headway(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headway.cli.main", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("written", "meant"), [(("bnch",), "bench"), (("compar", "a", "b"), "compare")]
)
def test_a_misspelt_command_is_told_with_the_one_that_is_meant(
    tmp_path: Path, written: tuple[str, ...], meant: str
) -> None:
    done = headway(*written, cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert f"Did you mean '{meant}'?" in done.stderr


def test_a_command_like_no_other_is_told_without_a_guess(tmp_path: Path) -> None:
    done = headway("qqqq", cwd=tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert "No such command 'qqqq'." in done.stderr
    assert "Did you mean" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "file.txt"),
        ("bench", "--backend", "null", "--rate", "9", "--max-requests", "1", "--no-calibrate",
         "--run-dir", "file.txt/run"),
    ],
)  # fmt: skip
def test_a_path_that_cannot_be_used_is_a_sentence_and_no_traceback(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "file.txt").write_text("no directory", encoding="utf-8")
    done = headway(*arguments, cwd=tmp_path)
    assert done.returncode in (ExitCode.ERROR, ExitCode.USAGE)
    assert "file.txt" in done.stderr
    assert "Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_server_it_is_said_how_to_come_by_one(tmp_path: Path) -> None:
    done = headway("jobs", "list", "--server", "http://127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == ExitCode.SERVER_UNREACHABLE
    assert "`headway serve`" in done.stderr
    assert "HEADWAY_SERVER" in done.stderr

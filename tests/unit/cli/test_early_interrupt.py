"""Ctrl-C while the command still loads its modules: a word, its code, and no traceback (L8)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.cli.commands import _SUBCOMMANDS
from headway.cli.exit_codes import ExitCode

LOADED_FIRST = ["headway.cli.interrupts", "headway.cli.commands", "click", "difflib"]

# Ctrl-C comes when `module` is looked for: as the code runs, or in a destructor, out of which
# Python lets no exception, as in the weak references of the import system's own locks.
INTERRUPTED = """
import signal, sys

module, where, *sys.argv[1:] = sys.argv[1:]

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

class Finder:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            Dropped() if where == "destructor" else signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
from headway.cli.main import main
main()
"""


def interrupted(
    module: str,
    where: str,
    *arguments: str,
    cwd: Path,
    before: Callable[[], object] | None = None,
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", INTERRUPTED, module, where, *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=60, preexec_fn=before
    )


def check_ended_as_an_interrupt_does(done: subprocess.CompletedProcess[str], cwd: Path) -> None:
    assert done.stderr == "\nInterrupted.\n"
    assert done.stdout == ""
    assert done.returncode == ExitCode.INTERRUPTED
    assert list(cwd.iterdir()) == []


@pytest.mark.parametrize("module", LOADED_FIRST)
def test_ctrl_c_before_any_subcommand_is_loaded_is_one_word(tmp_path: Path, module: str) -> None:
    check_ended_as_an_interrupt_does(interrupted(module, "code", "--help", cwd=tmp_path), tmp_path)


@pytest.mark.parametrize("where", ["code", "destructor"])
@pytest.mark.parametrize("subcommand", _SUBCOMMANDS)
def test_ctrl_c_while_a_subcommand_is_loaded_is_one_word(
    tmp_path: Path, subcommand: str, where: str
) -> None:
    """Lost in a destructor, it let a load test run to its end, and a server start."""
    module = _SUBCOMMANDS[subcommand].location.partition(":")[0]
    done = interrupted(module, where, subcommand, "--help", cwd=tmp_path)
    check_ended_as_an_interrupt_does(done, tmp_path)


def test_where_ctrl_c_is_ignored_it_stays_so(tmp_path: Path) -> None:
    """A shell starts what it sends to the background so; Ctrl-C is for another command there."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    done = interrupted("click", "code", "--version", cwd=tmp_path, before=ignore)
    assert done.returncode == ExitCode.OK, done.stderr
    assert done.stdout.startswith("headway")

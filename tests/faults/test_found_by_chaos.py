"""What `headway chaos` has found, each bug as a test of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from accounting import wait_until
from fault_server import OPERATIONS

pytestmark = pytest.mark.timeout(240)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_being_told_to_stop_while_starting_is_no_error(command: str, tmp_path: Path) -> None:
    """J18: the worker that was ended over its start was reported as one that cannot work."""
    port = ("--port", "0") if command == "serve" else ()
    arguments = (command, "--no-bench", "--operations", str(OPERATIONS), *port)
    with subprocess.Popen(
        [sys.executable, "-m", "headway.cli.main", *arguments, "--state-dir", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as starting:  # fmt: skip
        children = psutil.Process(starting.pid).children
        wait_until(lambda: bool(children()), 60, lambda: "it starts no worker")
        # The moment is made sure: the worker cannot become ready before it is told to end.
        worker = children()[0].pid
        os.kill(worker, signal.SIGSTOP)
        starting.terminate()
        os.kill(worker, signal.SIGCONT)
        _, errors = starting.communicate(timeout=60)
    assert starting.returncode == 0, errors
    assert "Error" not in errors

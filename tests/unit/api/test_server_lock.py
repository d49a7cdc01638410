"""One server for a state directory; the kernel frees the lock of a dead one (traps 19 and 25b)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headway.api.server_lock import ServerLock
from headway.core.errors import ConfigError

HOLD = """
import sys, time
from pathlib import Path
from headway.api.server_lock import ServerLock
with ServerLock(Path(sys.argv[1])) as lock:
    lock.announce("http://127.0.0.1:1234")
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run" / "server.lock"
    path.parent.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        words = rf"already uses {tmp_path} \(process {holder.pid}, http://127.0.0.1:1234\)"
        with pytest.raises(ConfigError, match=words), ServerLock(path):
            pass
        holder.kill()
    with ServerLock(path) as lock:
        lock.announce("http://127.0.0.1:1")


def test_a_child_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    """Trap 25b: children that outlived their server made the restart refuse."""
    path = tmp_path / "server.lock"
    with ServerLock(path):
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
        )
    try:
        with ServerLock(path):
            pass
    finally:
        child.communicate(b"\n")

"""The small parts of execution: files, processes, control groups, results, environment."""

# ruff: noqa: ASYNC220, ASYNC240 - short waits and file reads of a test harm nobody
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headway.core.clock import SystemClock
from headway.execution import result_sink, stale
from headway.execution.attempt import Succeeded
from headway.execution.cgroup import Cgroup, CgroupBase, _version_2_mounts, find_parent
from headway.execution.debug_log import close_logger, debug_logger
from headway.execution.linux import (
    descendants,
    is_running,
    kill_exactly,
    process_name,
    read_process,
    read_processes,
)
from headway.execution.process_state import SETTINGS
from headway.execution.result_sink import ResultSink
from headway.execution.temp_dirs import TempDirs

# --- /proc ------------------------------------------------------------------------------------


def test_facts_of_a_process_whose_name_has_spaces_and_parentheses() -> None:
    code = "open('/proc/self/comm', 'w').write('a) (b c'); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        facts = read_process(process.pid)
        assert facts.parent == os.getpid()
        assert facts.alive
        assert facts.rss_bytes > 1 << 20
        assert facts.pid in {found.pid for found in descendants(os.getpid(), read_processes())}
        process.communicate(b"\n")
    assert read_process(process.pid) is None


def test_trap_5_a_process_with_a_reused_pid_is_not_hit() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        facts = read_process(process.pid)
        earlier = facts._replace(start_ticks=facts.start_ticks - 1)
        assert not kill_exactly(earlier)
        assert process.poll() is None
        assert kill_exactly(facts)
        assert process.wait() == -signal.SIGKILL
    assert not kill_exactly(facts), "trap 3: a missing pid is no error"


def test_a_process_name_tells_the_living_from_the_dead() -> None:
    own = process_name(os.getpid())
    assert is_running(own)
    assert is_running(f"{own}.suffix")
    pid, start = own.split(".")
    assert not is_running(f"{pid}.{int(start) - 1}")
    assert not is_running("nonsense")
    assert process_name(2**22 + 1) is None


def test_a_stale_process_is_found_by_its_owner() -> None:
    dead = f"{os.getpid()}.1"
    environment = {"PATH": os.environ["PATH"], stale.OWNER_VARIABLE: dead}
    with subprocess.Popen(["sleep", "60"], env=environment) as process:
        # Any supervisor that starts meanwhile may find it as well.
        stale.kill_stale()
        assert process.wait(10) == -signal.SIGKILL
    environment[stale.OWNER_VARIABLE] = process_name(os.getpid())
    with subprocess.Popen(["sleep", "60"], env=environment) as process:
        assert process.pid not in {facts.pid for facts in stale.find_stale()}
        process.kill()


# --- control groups ---------------------------------------------------------------------------

MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
30 23 0:26 /docker/abc /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup rw,nsdelegate
"""


def test_version_2_is_found_also_on_hybrid_hosts_and_in_containers() -> None:
    assert list(_version_2_mounts(MOUNTS)) == [
        ("/", "/sys/fs/cgroup/unified"),
        ("/docker/abc", "/sys/fs/cgroup"),
    ]


def test_a_host_without_groups_is_no_error(tmp_path) -> None:
    """Plain files are no control groups: nothing is made, nothing is left."""
    base = CgroupBase(tmp_path, "1.2")
    assert not base.create()
    assert list(tmp_path.iterdir()) == []
    group = Cgroup(tmp_path / "missing")
    group.kill_nowait()
    assert group.members() == ()
    assert not group.is_populated()
    assert not group.limit_memory(1)
    assert group.cpu_s() is None
    assert group.peak_memory_bytes() == group.out_of_memory_kills() == 0
    assert group.remove()


@pytest.mark.serial  # any other supervisor that starts meanwhile removes them as well
async def test_groups_of_dead_supervisors_are_killed_and_removed() -> None:
    parent = find_parent()
    base = CgroupBase(parent, f"{os.getpid()}.1.stale") if parent else None
    if base is None or not base.create():
        pytest.skip("no cgroups can be made here")
    with subprocess.Popen(["sleep", "60"]) as process:
        base.new().enter(process.pid)
        CgroupBase(parent, process_name(os.getpid())).kill_stale()
        assert process.wait(10) == -signal.SIGKILL
    assert await Cgroup(base.path).kill(SystemClock()) == ()
    base.remove()
    assert not base.path.exists()


# --- files --------------------------------------------------------------------------------------


def test_a_small_result_stays_in_memory(tmp_path) -> None:
    sink = ResultSink(tmp_path / "job", 1)
    sink.add(b'"abc')
    sink.add(b'"')
    assert sink.complete(5) == Succeeded(b'"abc"', None, 5)
    assert not (tmp_path / "job").exists()


def test_a_big_result_is_a_file_once_it_is_complete(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(result_sink, "INLINE_BYTES", 10)
    sink = ResultSink(tmp_path / "job", 3)
    for part in (b"12345", b"67890", b"abcde", b"f"):
        sink.add(part)
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["3.json.partial"]
    assert sink.complete(16) == Succeeded(None, tmp_path / "job" / "3.json", 16)
    assert (tmp_path / "job" / "3.json").read_bytes() == b"1234567890abcdef"


def test_a_result_that_is_not_completed_leaves_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(result_sink, "INLINE_BYTES", 1)
    sink = ResultSink(tmp_path / "job", 1)
    sink.add(b"12345")
    sink.discard()
    assert list((tmp_path / "job").iterdir()) == []


def test_a_result_that_cannot_be_stored_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(result_sink, "INLINE_BYTES", 1)
    (tmp_path / "job").write_text("a file where a directory should be")
    sink = ResultSink(tmp_path / "job", 1)
    sink.add(b"12345")
    sink.add(b"67890")
    with pytest.raises(OSError, match="exists"):
        sink.complete(10)


async def test_an_empty_temp_directory_is_used_again_and_a_changed_one_is_not(tmp_path) -> None:
    """J12."""
    dirs = TempDirs(tmp_path, process_name(os.getpid()))
    dirs.open()
    first = dirs.take()
    await dirs.give_back(first)
    assert dirs.take() == first
    inner = Path(first, "inner")
    inner.mkdir()
    (inner / "file").write_text("x")
    inner.chmod(0)
    await dirs.give_back(first)
    assert not Path(first).exists()
    second = dirs.take()
    assert second != first
    os.chmod(second, 0o755)
    await dirs.give_back(second)
    assert not Path(second).exists()
    third = dirs.take()
    os.rmdir(third)
    await dirs.give_back(third)
    assert dirs.take() != third
    dirs.close()
    assert list(tmp_path.iterdir()) == []


def test_temp_directories_of_the_dead_are_removed_and_of_the_living_kept(tmp_path) -> None:
    (tmp_path / "worker-1.1" / "5").mkdir(parents=True)
    (tmp_path / "worker-1.1" / "5" / "file").write_text("x")
    living = tmp_path / f"worker-{process_name(os.getppid())}"
    living.mkdir()
    (tmp_path / "somebody-elses").mkdir()
    TempDirs(tmp_path, process_name(os.getpid())).open()
    assert not (tmp_path / "worker-1.1").exists()
    assert living.exists()
    assert (tmp_path / "somebody-elses").exists()


def test_a_debug_log_is_made_on_first_use_and_cut_at_its_limit(tmp_path, monkeypatch) -> None:
    path = tmp_path / "job" / "1.debug.log"
    logger = debug_logger("job", path)
    assert not path.exists()
    logger.handlers[0]._limit = 100  # type: ignore[attr-defined]
    for number in range(20):
        logger.debug("line %d", number)
    close_logger(logger)
    text = path.read_text()
    assert "DEBUG line 0" in text
    assert text.count("was cut here") == 1
    assert "line 19" not in text
    assert logger.handlers == []


# --- process state --------------------------------------------------------------------------------


def test_every_setting_can_be_read_and_written_back() -> None:
    code = (
        "from headway.execution.process_state import ProcessState\n"
        "state = ProcessState(); state.restore(); state.restore()\n"
        "assert state.reason_to_retire(threads=1) is None\n"
        "assert 'thread' in state.reason_to_retire(threads=2)\n"
        "import threading; t = threading.Timer(60, print); t.daemon = True; t.start()\n"
        "assert 'thread' in state.reason_to_retire(threads=1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)

"""L8: what was appended outlives the process, the kill and the full disk."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from headway.core.errors import DiskError
from headway.records.record import RequestRecord
from headway.records.run_dir import RunDirectory, RunFile
from headway.report import build, write_reports

RUN = RunFile(run_id="r1", created="2026-11-30T00:00:00Z", seed=1, spec={})

WRITER = """
import sys
from pathlib import Path
import msgspec
from headway.records.record import RequestRecord, StageStarted
from headway.records.run_dir import RunDirectory, RunFile

directory = RunDirectory.create(
    Path(sys.argv[1]), RunFile(run_id="r1", created="2026-11-30T00:00:00Z", seed=1, spec={})
)
directory.append_event(
    StageStarted(stage=0, name="s", profile={"kind": "constant", "rate": [100]}, workers=1,
                 started_wall="2026-11-30T00:00:00Z", started_monotonic_ns=1)
)
for i in range(1_000_000):
    record = RequestRecord(stage=0, index=i, status="completed", due_ns=i * 10**7,
                           sent_ns=i * 10**7, done_ns=i * 10**7 + 10**6)
    directory.append_records(msgspec.json.encode(record) + b"\\n")
    print(i, flush=True)
"""


def _line(index: int) -> bytes:
    record = RequestRecord(
        stage=0, index=index, status="completed", due_ns=index, done_ns=index + 1
    )
    return msgspec.json.encode(record) + b"\n"


def test_every_record_that_was_appended_is_reported_after_kill_9(tmp_path: Path) -> None:
    """Trap 47: what had been measured is not lost with the process."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        confirmed = [int(process.stdout.readline()) for _ in range(500)]
        process.send_signal(signal.SIGKILL)
        confirmed += [int(line) for line in process.stdout.read().splitlines() if line.isdigit()]
    report = build(RunDirectory(tmp_path / "run"))
    (stage,) = report.stages
    assert stage.partial
    assert stage.counts.completed >= confirmed[-1] + 1
    assert stage.latency is not None
    assert stage.latency.p50_s == pytest.approx(0.001)


@contextmanager
def _no_file_beyond(size_bytes: int) -> Iterator[None]:
    """A real limit of the kernel that breaks a write off in the middle, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_a_clear_error_and_what_was_written_stays_whole(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", RUN)
    first = b"".join(_line(i) for i in range(10))
    second = b"".join(_line(i) for i in range(10, 20))
    directory.append_records(first)
    with (
        _no_file_beyond(len(first) + len(second) // 2),
        pytest.raises(DiskError, match=r"cannot write .*records\.jsonl: File too large"),
    ):
        directory.append_records(second)
    assert (directory.path / "records.jsonl").read_bytes() == first
    directory.append_records(second)
    assert [record.index for record in directory.records()] == list(range(20))
    directory.close()


def test_a_report_that_cannot_be_written_leaves_the_former_one(tmp_path: Path) -> None:
    directory = RunDirectory.create(tmp_path / "run", RUN)
    directory.append_records(_line(0))
    report = build(directory)
    write_reports(directory, report)
    before = (directory.path / "report.json").read_bytes()
    with _no_file_beyond(100), pytest.raises(DiskError, match=r"report\.json"):
        write_reports(directory, report)
    assert (directory.path / "report.json").read_bytes() == before
    assert not list(directory.path.glob("*.tmp"))
    directory.close()

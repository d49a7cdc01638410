"""The log pump by itself: holding still, full disks, limits, pipes that never end (J3, J20)."""

# ruff: noqa: ASYNC110, ASYNC240 - short waits and file reads of a test harm nobody
from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from headway.execution import log_pump
from headway.execution.log_pump import LogPump, LogRules


class Rules:
    """Mutable rules and what was told."""

    def __init__(self, limit_bytes: int = 1 << 30) -> None:
        self.limit_bytes = limit_bytes
        self.writable = True
        self.told: list[int] = []

    def frozen(self) -> LogRules:
        return LogRules(self.limit_bytes, lambda: self.writable, self.told.append)


def opened(path: Path, rules: Rules) -> tuple[LogPump, int]:
    pump = LogPump(lambda: path, rules.frozen())
    return pump, pump.open()


async def size_reaches(path: Path, size: int) -> None:
    async with asyncio.timeout(60):
        while not path.exists() or path.stat().st_size < size:
            await asyncio.sleep(0.005)


async def test_output_appears_while_the_job_runs(tmp_path) -> None:
    rules = Rules()
    pump, writer = opened(tmp_path / "job" / "1.log", rules)
    os.write(writer, b"first\n")
    await size_reaches(tmp_path / "job" / "1.log", 6)
    os.write(writer, b"second\n")
    os.close(writer)
    summary = await pump.finish()
    assert (tmp_path / "job" / "1.log").read_bytes() == b"first\nsecond\n"
    assert (summary.size_bytes, summary.discarded_bytes, summary.complete) == (13, 0, True)
    assert rules.told[-1] == 13


async def test_the_pump_holds_still_while_the_lease_is_over(tmp_path) -> None:
    """J5: nothing is written without a lease, and nothing is lost when it is renewed."""
    rules = Rules()
    path = tmp_path / "1.log"
    pump, writer = opened(path, rules)
    rules.writable = False
    os.write(writer, b"while without a lease\n")
    await asyncio.sleep(0.12)
    assert not path.exists()
    rules.writable = True
    await size_reaches(path, 22)
    os.close(writer)
    assert (await pump.finish()).complete


async def test_what_is_left_without_a_lease_is_dropped(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(log_pump, "DRAIN_LIMIT_S", 0.2)
    rules = Rules()
    pump, writer = opened(tmp_path / "1.log", rules)
    rules.writable = False
    os.write(writer, b"stale\n")
    os.close(writer)
    summary = await pump.finish()
    assert not summary.complete
    assert not (tmp_path / "1.log").exists()


async def test_a_pipe_that_a_survivor_holds_open_does_not_hang(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(log_pump, "DRAIN_LIMIT_S", 0.1)
    pump, writer = opened(tmp_path / "1.log", Rules())
    os.write(writer, b"said\n")
    async with asyncio.timeout(60):
        summary = await pump.finish()
    assert not summary.complete
    assert (tmp_path / "1.log").read_bytes() == b"said\n"
    with pytest.raises(BrokenPipeError):
        os.write(writer, b"too late")
    os.close(writer)


async def test_a_full_disk_costs_log_and_is_marked_when_there_is_room(
    tmp_path, monkeypatch
) -> None:
    path = tmp_path / "1.log"
    pump, writer = opened(path, Rules())
    os.write(writer, b"before\n")
    await size_reaches(path, 7)
    write = os.write
    full = True

    def limited(descriptor: int, data: Any) -> int:
        if full and descriptor != writer:
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(log_pump.os, "write", limited)
    write(writer, b"lost line\n")
    async with asyncio.timeout(60):
        while pump._discarded < 10:
            await asyncio.sleep(0.005)
    full = False
    write(writer, b"after\n")
    os.close(writer)
    summary = await pump.finish()
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "10 bytes were lost here: No space left on device" in text
    assert summary.discarded_bytes == 10
    assert not summary.complete


@pytest.mark.parametrize("size", [99, 100, 101, 5000])
async def test_a_log_is_cut_at_its_limit_once(tmp_path, size) -> None:
    path = tmp_path / "1.log"
    pump, writer = opened(path, Rules(limit_bytes=100))
    for start in range(0, size, 10):
        os.write(writer, b"x" * min(10, size - start))
        await asyncio.sleep(0)
    os.close(writer)
    summary = await pump.finish()
    text = path.read_text()
    assert text[:100] == "x" * min(size, 100)
    assert text.count("was cut here") == (size > 100)
    assert summary.discarded_bytes == max(0, size - 100)
    assert summary.size_bytes == len(text)


async def test_a_log_that_exists_is_continued(tmp_path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(b"earlier\n")
    rules = Rules()
    pump, writer = opened(path, rules)
    os.write(writer, b"later\n")
    os.close(writer)
    summary = await pump.finish()
    assert path.read_bytes() == b"earlier\nlater\n"
    assert summary.size_bytes == rules.told[-1] == 14

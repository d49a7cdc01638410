from __future__ import annotations

from pathlib import Path

from headway.api.log_files import JobLogs
from headway.dashboard.log_tail import LINES, MAX_BYTES, log_tail, plain_text


def test_colours_controls_and_overwritten_text_are_left_out() -> None:
    assert plain_text("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x00\x08y\n") == "red xy\n"
    assert plain_text("10%\r50%\r100%\nnext\r\n") == "100%\nnext\n"


async def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "1.log").write_text("".join(f"line {n}\n" for n in range(50_000)))
    shown = await log_tail(JobLogs(lambda attempt: tmp_path / f"{attempt}.log"), 1)
    assert shown.splitlines() == [f"line {n}" for n in range(50_000 - LINES, 50_000)]


async def test_one_endless_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "1.log").write_bytes(b"x" * 5_000_000)
    shown = await log_tail(JobLogs(lambda attempt: tmp_path / f"{attempt}.log"), 1)
    assert 0 < len(shown) <= MAX_BYTES


async def test_a_job_that_never_ran_has_no_log(tmp_path: Path) -> None:
    assert await log_tail(JobLogs(lambda attempt: tmp_path / f"{attempt}.log"), 0) == ""

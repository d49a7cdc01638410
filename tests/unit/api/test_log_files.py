"""Reading logs as text, and the arithmetic of tails and positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.api.log_files import PIECE_BYTES, JobLogs, LogPosition

NO_LIMIT = 1 << 40


def logs_with(directory: Path, *contents: bytes) -> JobLogs:
    for attempt, content in enumerate(contents, 1):
        (directory / f"{attempt}.log").write_bytes(content)
    return JobLogs(lambda attempt: directory / f"{attempt}.log")


async def read_all(logs: JobLogs, start: LogPosition, last: int) -> bytes:
    end = LogPosition(last, logs.size_bytes(last))
    return b"".join([piece async for piece in logs.pieces(start, end)])


@settings(max_examples=50, deadline=None)
@given(
    lines=st.lists(st.sampled_from([b"", b"x", b"some words", b"y" * 3000]), max_size=80),
    ended=st.booleans(),
    wanted=st.integers(0, 100),
)
async def test_the_tail_is_the_last_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ended: bool, wanted: int
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    logs = logs_with(tmp_path_factory.mktemp("logs"), content)
    start = logs.tail(wanted, 1, 1, NO_LIMIT)
    expected = content.splitlines(keepends=True)[-wanted:] if wanted else []
    assert await read_all(logs, start, 1) == b"".join(expected)


async def test_a_tail_reaches_back_into_earlier_attempts(tmp_path: Path) -> None:
    logs = logs_with(tmp_path, b"a\nb\nc\n", b"", b"d\ne")
    assert await read_all(logs, logs.tail(4, 1, 3, NO_LIMIT), 3) == b"b\nc\nd\ne"
    assert await read_all(logs, logs.tail(99, 1, 3, NO_LIMIT), 3) == b"a\nb\nc\nd\ne"


async def test_a_tail_of_one_endless_line_looks_back_no_further_than_its_limit(
    tmp_path: Path,
) -> None:
    """J20: a 1 GiB log does not hurt the server; here 4 MiB without a line end."""
    logs = logs_with(tmp_path, b"first\n", b"z" * (4 << 20))
    start = logs.tail(10, 1, 2, 1 << 20)
    assert start.attempt == 2
    assert (4 << 20) - start.offset <= (1 << 20) + PIECE_BYTES


async def test_a_large_log_is_sent_in_pieces(tmp_path: Path) -> None:
    content = bytes(range(256)) * 2048
    logs = logs_with(tmp_path, content)
    pieces = [p async for p in logs.pieces(LogPosition(1, 0), LogPosition(1, len(content)))]
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= PIECE_BYTES


async def test_a_download_is_the_log_byte_for_byte_and_says_where_it_ends(api: Any) -> None:
    """J3: colours and bytes that are no text are kept."""
    job_id = await api.submit(input={"model": "x"})
    await api.claim()
    content = b"\x1b[31mred\x1b[0m\xff\n"
    api.write_log(job_id, 1, content)
    answer = await api.http.get(f"/v1/jobs/{job_id}/logs")
    assert answer.content == content
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    position = answer.headers["headway-log-position"]
    api.write_log(job_id, 1, b"more\n")
    answer = await api.http.get(f"/v1/jobs/{job_id}/logs?since={position}")
    assert answer.content == b"more\n"


async def test_one_attempts_log_or_the_debug_log_can_be_asked_for(api: Any) -> None:
    job_id = await api.submit(input={"model": "x"})
    await api.claim()
    api.write_log(job_id, 1, b"out\n")
    api.state_dir.attempt_debug_log(job_id, 1).write_bytes(b"debug\n")
    wanted = {"attempt=1": b"out\n", "attempt=2": b"", "kind=debug": b"debug\n", "tail=0": b""}
    for query, content in wanted.items():
        answer = await api.http.get(f"/v1/jobs/{job_id}/logs?{query}")
        assert answer.content == content, query


async def test_a_job_that_printed_nothing_has_an_empty_log(api: Any) -> None:
    job_id = await api.submit(input={"model": "x"})
    assert (await api.http.get(f"/v1/jobs/{job_id}/logs")).content == b""

"""Operations whose results have a size that was asked for, one in each lane."""

from __future__ import annotations

from headway.jobs import JobContext, operation


@operation(lane="long", retryable=True, max_attempts=3)
def long_text(job: JobContext, size_bytes: int) -> str:
    return _text(size_bytes)


@operation(lane="short", retryable=True, max_attempts=3)
def short_text(job: JobContext, size_bytes: int) -> str:
    return _text(size_bytes)


@operation(lane="inline", retryable=True, max_attempts=3)
def inline_text(job: JobContext, size_bytes: int) -> str:
    return _text(size_bytes)


@operation(lane="short")
def as_artifact(job: JobContext, size_bytes: int) -> str:
    """What a result that is too large should be instead."""
    (job.temp_dir / "text.json").write_text(_text(size_bytes))
    job.artifact("text.json", job.temp_dir / "text.json")
    return "text.json"


def _text(size_bytes: int) -> str:
    """Of so many bytes as JSON, with its quotes."""
    return "x" * (size_bytes - 2)

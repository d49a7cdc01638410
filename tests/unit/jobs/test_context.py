"""The job's view: progress, artifacts, cancel, caches, environment rules, errors as data."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import logging
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from headway.core.errors import ConfigError
from headway.jobs import (
    Artifact,
    EnvironmentPolicy,
    JobCancelled,
    JobContext,
    Retry,
    attempt_cache,
    current_job,
    invocation,
    operation,
)
from headway.jobs.artifacts import ArtifactDir, check_name
from headway.jobs.cancellation import cancelled_as_job_cancelled
from headway.jobs.context import AttemptPlace, enter_job
from headway.jobs.describe import MAX_CAUSES, MAX_TEXT, describe
from headway.jobs.job_dir import JobDir
from headway.jobs.operation import MARK


class Sink:
    def __init__(self) -> None:
        self.told: list[Any] = []
        self.cancel = False

    def progress(self, *values: Any) -> None:
        self.told.append(values)

    def artifact(self, artifact: Artifact) -> None:
        self.told.append(artifact)

    def cancel_requested(self) -> bool:
        return self.cancel


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def job(tmp_path: Path, sink: Sink) -> JobContext:
    place = AttemptPlace(
        temp_dir=tmp_path,
        job_dir=JobDir(tmp_path / "work", 1),
        artifacts=ArtifactDir(tmp_path / "artifacts", 100),
        env={"A": "1"},
        log=logging.Logger("job"),
    )
    return JobContext("id", 1, "op", {}, {}, place, sink)


def test_progress_is_checked_and_made_plain(job, sink) -> None:
    job.progress(0.5, "half", loss=1, bad=float("nan"))
    job.progress(message="x" * 9999)
    assert sink.told[0] == (0.5, "half", {"loss": 1.0})
    assert len(sink.told[1][1]) == 2000
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match="0 to 1"):
            job.progress(wrong)


def test_check_cancelled_raises_once_asked(job, sink) -> None:
    job.check_cancelled()
    sink.cancel = True
    with pytest.raises(JobCancelled):
        job.check_cancelled()


def test_job_cancelled_is_no_exception_that_a_job_catches_by_accident() -> None:
    assert not issubclass(JobCancelled, Exception)
    assert issubclass(JobCancelled, asyncio.CancelledError)


def test_an_artifact_is_written_whole_or_not_at_all(job, sink, tmp_path) -> None:
    artifact = job.artifact("a/b.json", b"{}")
    assert artifact == Artifact("a/b.json", "application/json", 2)
    assert sink.told == [artifact]
    with pytest.raises(ConfigError, match="limit is 100 bytes"):
        job.artifact("big", b"x" * 101)
    with pytest.raises(ConfigError, match="no file"):
        job.artifact("missing", tmp_path / "missing")
    files = [p.name for p in (tmp_path / "artifacts").rglob("*") if p.is_file()]
    assert files == ["b.json"]


@given(st.text(max_size=30))
def test_no_accepted_name_leaves_the_directory(name) -> None:
    try:
        check_name(name)
    except ConfigError:
        return
    root = Path("/root/of/artifacts")
    joined = root / name
    assert root in joined.parents
    assert ".." not in joined.parts
    assert "\0" not in name


def test_the_current_job_is_known_in_its_context_only(job) -> None:
    context = contextvars.copy_context()
    context.run(enter_job, job)
    assert context.run(current_job) is job
    with pytest.raises(ConfigError, match="outside a job"):
        current_job()


def test_a_cache_belongs_to_one_attempt(job) -> None:
    calls = []

    @attempt_cache
    def costly(a: int, *, b: int = 0) -> int:
        calls.append((a, b))
        return a + b

    def twice() -> None:
        enter_job(job)
        assert costly(1, b=2) == costly(1, b=2) == 3
        assert costly(2) == 2

    contextvars.copy_context().run(twice)
    assert calls == [(1, 2), (2, 0)]
    assert costly(1) == costly(1) == 1
    assert len(calls) == 4, "outside a job nothing is kept"


# --- the environment ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "PATH",
        "LD_PRELOAD",
        "PYTHONPATH",
        "HEADWAY_STORE_URL",
        "DYLD_X",
        "BASH_ENV",
        "IFS",
        "TMPDIR",
        "path",
        "pythonpath",
    ],
)
def test_what_belongs_to_the_server_cannot_be_set_even_when_allowed(name) -> None:
    """J10, trap 12."""
    with pytest.raises(ConfigError, match="may not set"):
        EnvironmentPolicy(settable=("*",)).check({name: "x"})


@pytest.mark.parametrize("name", ["", "A B", "A=B", "1A", "A\n", "Ü"])
def test_names_that_are_none_are_refused(name) -> None:
    with pytest.raises(ConfigError, match="no name"):
        EnvironmentPolicy(settable=("*",)).check({name: "x"})


def test_only_what_is_on_the_list_can_be_set() -> None:
    policy = EnvironmentPolicy()
    policy.check({"APP_MODE": "x", "HF_HOME": "/x", "NO_COLOR": "1"})
    with pytest.raises(ConfigError, match="allow-list"):
        policy.check({"OTHER": "x"})
    EnvironmentPolicy(settable=("OTHER",)).check({"OTHER": "x"})
    with pytest.raises(ConfigError, match="NUL"):
        policy.check({"APP_MODE": "a\0b"})
    with pytest.raises(ConfigError, match="100"):
        policy.check({f"APP_{number}": "" for number in range(101)})


def test_nothing_secret_is_inherited_even_by_a_wide_list() -> None:
    server = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET": "s", "HEADWAY_STORE_URL": "s", "X": "y"}
    assert EnvironmentPolicy().base(server) == {"PATH": "/bin", "LC_ALL": "C"}
    assert "HEADWAY_STORE_URL" not in EnvironmentPolicy(inherited=("*",)).base(server)


# --- errors and calls -----------------------------------------------------------------------------


def test_long_texts_are_cut_and_causes_bounded() -> None:
    error: Exception = ValueError("deep")
    for _ in range(30):
        outer = RuntimeError("x" * (MAX_TEXT * 2))
        outer.__cause__ = error
        error = outer
    info = describe(error)
    depth = 0
    while info.cause is not None:
        assert len(info.message) < MAX_TEXT + 100
        info, depth = info.cause, depth + 1
    assert depth == MAX_CAUSES


def test_a_cause_that_was_suppressed_is_not_shown() -> None:
    def fails() -> None:
        try:
            raise KeyError("secret")
        except KeyError:
            raise ValueError("clean") from None

    with pytest.raises(ValueError, match="clean") as caught:
        fails()
    assert describe(caught.value).cause is None


@operation(retry_on=OSError)
def sample(job, a: int, b: int = 1) -> int:
    return a + b


@operation()
def whatever(job) -> Any:
    return None


def test_a_call_from_json_to_json(job) -> None:
    op = getattr(sample, MARK)
    request = invocation.parse_request(op, b'{"a": 2}')
    values = invocation.arguments(op, job, request)
    assert values == (job, 2, 1)
    assert invocation.answer_for_result(op, 3, True, 100) == invocation.Returned(b"3")
    assert invocation.answer_for_result(op, 3, False, 100) == invocation.Returned(None)
    assert isinstance(invocation.answer_for_result(op, "x", True, 100), invocation.Failed)
    assert invocation.answer_for_result(op, 12345, True, 5) == invocation.Returned(b"12345")
    assert isinstance(invocation.answer_for_result(op, 12345, True, 4), invocation.Failed)
    assert invocation.answer_for_result(op, 12345, False, 4) == invocation.Returned(None)


def nested(levels: int) -> Any:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return value


def test_a_result_that_no_client_could_read_fails_its_attempt_with_what_to_do() -> None:
    """It was kept, and the SDK and the command line broke at the answer that held it."""
    op = getattr(whatever, MARK)
    kept = invocation.answer_for_result(op, nested(199), True, 1_000)
    assert isinstance(kept, invocation.Returned)
    assert kept.result is not None
    from_json(b'{"result":%s}' % kept.result)  # the parser that models read answers with
    refused = invocation.answer_for_result(op, nested(200), True, 1_000)
    assert isinstance(refused, invocation.Failed)
    assert refused.error.type == "ResultRefused"
    assert "deeper than 199 levels" in refused.error.message
    assert "job.artifact" in refused.error.message
    assert invocation.answer_for_result(op, nested(200), False, 9) == invocation.Returned(None)


def test_what_an_exception_means() -> None:
    op = getattr(sample, MARK)
    asked = invocation.answer_for_error(op, Retry(after_s=2, reason="busy"))
    assert asked == invocation.AskedRetry(2, "busy")
    missing = invocation.answer_for_error(op, FileNotFoundError("x"))
    assert isinstance(missing, invocation.Failed)
    assert missing.retry
    exited = invocation.answer_for_error(op, SystemExit(1))
    assert isinstance(exited, invocation.Failed)
    assert not exited.retry
    memory = invocation.answer_for_error(op, MemoryError())
    assert isinstance(memory, invocation.Failed)
    assert memory.out_of_memory


async def test_a_cancelled_task_shows_job_cancelled_inside() -> None:
    seen: list[str] = []

    async def inner() -> str:
        try:
            await asyncio.sleep(60)
        except JobCancelled:
            seen.append("inner")
            raise
        return "never"

    async def outer() -> str:
        try:
            return await inner()
        finally:
            seen.append("outer")

    async def driven() -> Any:
        return await cancelled_as_job_cancelled(outer(), lambda: True)

    task = asyncio.ensure_future(driven())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["inner", "outer"]


async def test_results_errors_and_timeouts_pass_through_the_driver() -> None:
    async def times_out() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            return "timed out"
        return "never"

    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("mine")

    assert await cancelled_as_job_cancelled(times_out(), lambda: False) == "timed out"
    with pytest.raises(ValueError, match="mine"):
        await cancelled_as_job_cancelled(fails(), lambda: False)


def test_an_artifact_can_be_the_file_itself(job, tmp_path) -> None:
    file = tmp_path / "big"
    file.write_text("content")
    job.artifact("shared.txt", file, share=True)
    job.artifact("copied.txt", file)
    assert (tmp_path / "artifacts" / "shared.txt").samefile(file)
    assert not (tmp_path / "artifacts" / "copied.txt").samefile(file)
    assert (tmp_path / "artifacts" / "copied.txt").read_text() == "content"


def test_a_shared_file_is_still_whole_when_the_next_attempt_goes_on_writing(
    job, sink, tmp_path
) -> None:
    """The next attempt writes to a copy of the directory, not to the first one's artifact."""
    (job.job_dir / "records").write_text("one")
    job.artifact("records", job.job_dir / "records", share=True)
    place = dataclasses.replace(job.place, job_dir=JobDir(tmp_path / "work", 2))
    second = JobContext("id", 2, "op", {}, {}, place, sink)
    with (second.job_dir / "records").open("a") as file:
        file.write("two")
    assert (tmp_path / "artifacts" / "records").read_text() == "one"

"""Attempts in real processes: every way to end is a value with its exact cause (J3, J8, J26)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time

import pytest

from headway.core.states import Lane, Outcome
from headway.execution.attempt import (
    Cancelled,
    Died,
    Limits,
    OutOfMemory,
    Raised,
    RetryAsked,
    Succeeded,
    TimedOut,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 7, "text", {"a": [1, 2.5, None]}, "\u2603 \U0001f600"])
async def test_a_result_comes_back_as_json(bench, value) -> None:
    assert await bench.value("echo", {"value": value}) == value


async def test_an_input_of_any_size_arrives_whole(bench) -> None:
    """Also where it is just not all in what the process receives at once."""
    for size in (*range(64_600, 65_600, 40), 3 << 20):
        result = await bench.run("echo", {"value": "x" * size})
        assert isinstance(result.ending, Succeeded), result
        assert result.ending.result_bytes == size + 2


@pytest.mark.parametrize("size", [1 << 20, 50 << 20])
async def test_big_results_come_whole_and_as_a_file(bench, size) -> None:
    """Trap 4 and J8: the pipe is drained while the child lives."""
    result = await bench.run("big_result", {"size": size})
    assert isinstance(result.ending, Succeeded)
    assert result.ending.result is None
    assert result.ending.result_bytes == size + 2
    file = result.ending.result_file
    assert file is not None
    assert file.stat().st_size == size + 2
    with file.open() as text:
        assert text.read(5) == '"xxxx'
    assert not list(file.parent.glob("*.partial"))
    file.unlink()


async def test_a_result_over_its_limit_is_refused(bench) -> None:
    limits = Limits(result_bytes=1000)
    result = await bench.run("big_result", {"size": 998}, limits=limits)
    assert isinstance(result.ending, Succeeded)
    result = await bench.run("big_result", {"size": 999}, limits=limits)
    assert isinstance(result.ending, Raised)
    assert result.ending.error.type == "ResultTooLarge"
    assert "1,001 bytes of JSON and may have 1,000" in result.ending.error.message
    assert not result.ending.retry


async def test_a_result_that_has_no_json_form_is_an_error_not_none(bench) -> None:
    """Trap 4: it became None."""
    result = await bench.run("unserializable")
    assert isinstance(result.ending, Raised)
    assert result.ending.error.type == "ResultRefused"
    assert "lock" in result.ending.error.message
    assert not result.ending.retry


async def test_a_result_of_the_wrong_type_is_refused(bench) -> None:
    result = await bench.run("wrong_type")
    assert isinstance(result.ending, Raised)
    assert "wrong_type" in result.ending.error.message


async def test_a_result_that_is_not_wanted_is_dropped(bench) -> None:
    result = await bench.run("echo", {"value": 1}, keep_result=False)
    assert result.ending == Succeeded(None)


# --- errors ---------------------------------------------------------------------------------------


async def test_an_error_keeps_type_message_traceback_and_cause(bench) -> None:
    result = await bench.run("raises", {"kind": "chain"})
    assert isinstance(result.ending, Raised)
    error = result.ending.error
    assert (error.type, error.message) == ("RuntimeError", "outer")
    assert "raise RuntimeError" in (error.traceback or "")
    assert error.cause is not None
    assert error.cause.type == "KeyError"


async def test_an_error_named_by_retry_on_says_so_also_for_subclasses(bench) -> None:
    assert (await bench.run("raises", {"kind": "os"})).ending.retry
    assert not (await bench.run("raises")).ending.retry


async def test_an_error_without_a_usable_text_is_still_told(bench) -> None:
    result = await bench.run("raises", {"kind": "hostile"})
    assert "could not be made" in result.ending.error.message
    assert "ud800" in (await bench.run("raises")).ending.error.message


async def test_retry_is_a_value(bench) -> None:
    result = await bench.run("raises", {"kind": "retry"})
    assert result.ending == RetryAsked(1.5, "no GPU free")


async def test_memory_error_is_out_of_memory(bench) -> None:
    result = await bench.run("raises", {"kind": "memory"})
    assert isinstance(result.ending, OutOfMemory)
    assert result.outcome is Outcome.OUT_OF_MEMORY


async def test_sys_exit_is_an_error_of_the_job(bench) -> None:
    """Trap 8: SystemExit was caught by nobody and the future never resolved."""
    result = await bench.run("sys_exit", {"code": 0})
    assert isinstance(result.ending, Raised)
    assert result.ending.error.type == "SystemExit"


async def test_a_thread_that_exits_does_not_end_the_job(bench) -> None:
    """Trap 8."""
    assert await bench.value("thread_exits") == "alive"


async def test_input_is_validated_again_in_the_child(bench) -> None:
    result = await bench.run("exits", {"code": "not a number"})
    assert isinstance(result.ending, Raised)
    assert "code" in result.ending.error.message
    assert result.ending.error.traceback is None


async def test_an_unknown_operation_is_an_error(bench) -> None:
    result = await bench.run("nonesuch")
    assert isinstance(result.ending, Raised)
    assert "nonesuch" in result.ending.error.message


# --- deaths ---------------------------------------------------------------------------------------


async def test_a_killed_child_is_told_with_its_signal_and_neighbours_go_on(bench) -> None:
    """Traps 2 and 3: one death costs one job, and is not "no result"."""
    neighbours = [await bench.start("sleep", {"seconds": 0.5}) for _ in range(3)]
    result = await bench.run("kills_itself", {"number": signal.SIGKILL})
    assert isinstance(result.ending, Died)
    assert (result.ending.signal, result.ending.exit_code) == (signal.SIGKILL, None)
    assert "SIGKILL" in result.ending.description
    assert result.outcome is Outcome.WORKER_LOST
    for running, _ in neighbours:
        assert (await running.wait()).outcome is Outcome.SUCCEEDED


async def test_os_exit_is_told_with_its_code(bench) -> None:
    result = await bench.run("exits", {"code": 3})
    assert isinstance(result.ending, Died)
    assert (result.ending.signal, result.ending.exit_code) == (None, 3)
    assert "exit code 3" in result.ending.description


async def test_a_segfault_is_told_and_its_traceback_is_in_the_log(bench) -> None:
    running, _ = await bench.start("segfaults")
    result = await running.wait()
    assert isinstance(result.ending, Died)
    assert result.ending.signal == signal.SIGSEGV
    log = bench.log(running)
    assert log.startswith("before\n")
    assert "Segmentation fault" in log
    assert "segfaults" in log


async def test_a_job_that_breaks_the_protocol_harms_only_itself(bench) -> None:
    neighbour, _ = await bench.start("sleep", {"seconds": 0.3})
    result = await bench.run("breaks_the_socket")
    assert isinstance(result.ending, Died)
    assert (await neighbour.wait()).outcome is Outcome.SUCCEEDED


async def test_a_sigterm_from_elsewhere_is_not_taken_for_a_cancel(bench) -> None:
    running, recorder = await bench.start("sleep")
    await recorder.started.wait()
    os.kill(running.pid, signal.SIGTERM)
    result = await running.wait()
    assert isinstance(result.ending, Died)
    assert result.ending.signal == signal.SIGTERM
    assert "did not send" in result.ending.description


# --- cancel and timeout ---------------------------------------------------------------------------


async def test_cancel_raises_job_cancelled_and_lets_the_job_clean_up(bench, tmp_path) -> None:
    """J6."""
    running, recorder = await bench.start("cleans_up", {"note": str(tmp_path / "note")})
    # Not `started`: a cancel between the function's first instruction and its `try` is not cleaned.
    await recorder.printed.wait()
    report = await running.cancel()
    result = await running.wait()
    assert result.ending == Cancelled()
    assert (tmp_path / "note").read_text() == "cleaned"
    assert report is not None
    assert report.obeyed
    assert report.killed == ()
    assert report.reason == "cancelled"
    assert report.main_pid == running.pid


async def test_a_job_that_swallows_the_cancel_is_cancelled_all_the_same(bench) -> None:
    running, recorder = await bench.start("swallows_cancel")
    await recorder.started.wait()
    await running.cancel()
    assert (await running.wait()).ending == Cancelled()


async def test_an_async_job_sees_job_cancelled_inside(bench, tmp_path) -> None:
    running, recorder = await bench.start("async_sleep", {"note": str(tmp_path / "note")})
    await recorder.printed.wait()
    report = await running.cancel()
    assert (await running.wait()).ending == Cancelled()
    assert report.obeyed
    assert (tmp_path / "note").read_text() == "cleaned"


async def test_a_cancelled_async_job_takes_its_task_group_along(bench, tmp_path) -> None:
    running, recorder = await bench.start("async_group", {"note": str(tmp_path / "note")})
    await recorder.printed.wait()
    await running.cancel()
    assert (await running.wait()).ending == Cancelled()
    assert (tmp_path / "note").read_text() == "child cancelled"


async def test_a_cancel_before_the_job_has_begun_is_not_lost(bench) -> None:
    """Trap 7: the signal may arrive at any moment of the start."""
    for delay_s in (0, 0.001, 0.003, 0.006, 0.01):
        running, _ = await bench.start("sleep")
        await asyncio.sleep(delay_s)
        async with asyncio.timeout(10):
            await running.cancel(grace_s=30)
        assert (await running.wait()).ending == Cancelled()


async def test_cancelling_an_ended_attempt_signals_nobody(bench) -> None:
    """Traps 3 and 5: a missing pid is no error, a reused one is never hit."""
    running, _ = await bench.start("echo")
    await running.wait()
    assert await running.cancel() is None
    assert await bench.value("pid") == running.pid, "the warm process lives on"


async def test_a_timeout_is_its_own_outcome(bench) -> None:
    result = await bench.run("sleep", limits=Limits(timeout_s=0.2, grace_s=5))
    assert result.ending == TimedOut(0.2)
    assert result.kill is not None
    assert result.kill.reason == "timed_out"
    assert result.kill.obeyed


async def test_a_shorter_grace_shortens_a_cancel_under_way(bench, tmp_path) -> None:
    running, recorder = await bench.start("ignores", {"pids": str(tmp_path / "pids")})
    await recorder.printed.wait()
    first = asyncio.ensure_future(running.cancel(grace_s=600))
    await asyncio.sleep(0.05)
    report = await running.cancel(grace_s=0)
    assert not report.obeyed
    assert await first == report


# --- surroundings ---------------------------------------------------------------------------------


async def test_what_a_job_sees_of_its_process(bench) -> None:
    seen = await bench.value(
        "about",
        job_id="jobabout",
        attempt=4,
        env={"APP_COLOUR": "blue"},
        config={"level": 5},
        labels={"team": "a"},
    )
    assert (seen["id"], seen["attempt"], seen["labels"]) == ("jobabout", 4, {"team": "a"})
    assert seen["cwd"] == seen["tmp"] == seen["temp_dir"] == seen["env"]["TMPDIR"]
    assert seen["title"].startswith("headway: long job jobabout about"), "J16"
    assert seen["level"] == 5
    assert seen["session"]
    assert seen["stdin"] == ""
    assert seen["frozen"] > 1000, "Trap 16: the preloaded heap is not walked again"
    assert seen["current"]
    assert seen["same_env"]


async def test_the_environment_is_an_allow_list(bench) -> None:
    """J10, traps 12 and 18: secrets of the server are not there, thread limits are."""
    env = (await bench.value("about", env={"APP_COLOUR": "blue"}))["env"]
    assert env["APP_COLOUR"] == "blue"
    assert env["PATH"] == os.environ["PATH"]
    assert env["FORCE_COLOR"] == "1"
    assert env["OMP_NUM_THREADS"] == env["OPENBLAS_NUM_THREADS"] == "1"
    assert "HEADWAY_SECRET_TOKEN" not in env
    assert "LD_SOMETHING" not in env
    assert {name for name in env if name.startswith("HEADWAY_")} == {
        "HEADWAY_JOB_ID",
        "HEADWAY_ATTEMPT",
        "HEADWAY_OPERATION",
        "HEADWAY_OWNER",
    }


async def test_no_process_of_the_jobs_was_started_with_a_secret(bench) -> None:
    """J10: nor can one be read from /proc of the forkserver or of a job process."""
    pids = [bench.supervisor.forkserver_pid]
    text = "".join(await bench.value("environ_of", {"pids": pids}))
    assert "OMP_NUM_THREADS" in text, "the environment is readable as such"
    assert "do-not-leak" not in text


async def test_no_colour_is_respected(bench) -> None:
    env = (await bench.value("about", env={"NO_COLOR": "1"}))["env"]
    assert "FORCE_COLOR" not in env


async def test_a_config_that_does_not_fit_is_an_error(bench) -> None:
    result = await bench.run("about", config={"level": "high"})
    assert isinstance(result.ending, Raised)
    assert "level" in result.ending.error.message


# --- output ---------------------------------------------------------------------------------------


async def test_all_output_is_in_the_log_in_order(bench) -> None:
    """J3: Python, C code, children, grandchildren, raw writes; colours kept; debug log apart."""
    running, _ = await bench.start("output")
    result = await running.wait()
    assert result.outcome is Outcome.SUCCEEDED
    expected = [
        line
        for turn in range(3)
        for line in (
            f"python {turn}",
            f"error {turn}",
            f"c {turn}",
            f"child {turn}",
            f"grandchild {turn}",
            f"raw {turn}",
        )
    ]
    assert bench.log(running).splitlines() == [
        *expected,
        "\x1b[31mred\x1b[0m",
        "no newline and C without a flush",
    ]
    debug = bench.state_dir.attempt_debug_log(running.plan.job_id, 1).read_text()
    assert "DEBUG for the debug log" in debug
    assert result.log.complete


async def test_an_attempt_without_output_makes_no_file(bench) -> None:
    running, _ = await bench.start("echo")
    await running.wait()
    assert not bench.state_dir.job_logs(running.plan.job_id).exists()


async def test_each_attempt_has_its_own_log(bench) -> None:
    """J3: a retry appends a new attempt's log, the old stays."""
    for attempt in (1, 2):
        await bench.run("output", job_id="twice", attempt=attempt)
    logs = bench.state_dir.job_logs("twice")
    assert {path.name for path in logs.iterdir()} >= {"1.log", "2.log"}


async def test_a_job_may_close_its_streams(bench) -> None:
    running, _ = await bench.start("closes_streams")
    assert (await running.wait()).outcome is Outcome.SUCCEEDED
    assert bench.log(running) == "before\n"


async def test_a_hundred_thousand_short_lines_a_second_do_not_stall_the_supervisor(bench) -> None:
    """Issue 7: the loop stays responsive, every line is there once and in order."""
    running, recorder = await bench.start("lines", {"count": 200_000})
    worst, done = 0.0, asyncio.ensure_future(running.wait())
    while not done.done():
        # What the loop's thread works in between; what a busy machine does meanwhile is not that.
        before = time.thread_time()
        await asyncio.sleep(0.002)
        worst = max(worst, time.thread_time() - before)
    result = done.result()
    assert result.log.size_bytes == 200_000 * 20
    numbers = [int(line[:7]) for line in bench.log(running).splitlines()]
    assert numbers == list(range(200_000))
    assert worst < 0.5
    assert len(recorder.growth) < 20_000, "growth is coalesced"
    assert recorder.growth[-1] == result.log.size_bytes


async def test_a_log_over_its_limit_is_cut_with_a_mark(bench) -> None:
    running, _ = await bench.start("flood", {"megabytes": 3}, limits=Limits(log_bytes=1 << 20))
    result = await running.wait()
    assert result.outcome is Outcome.SUCCEEDED
    log = bench.log(running)
    assert log[: 1 << 20].count("\n") == 1024
    assert "the log was cut here: it reached its limit of 1048576 bytes" in log[1 << 20 :]
    assert result.log.discarded_bytes == 2 << 20
    assert result.log.size_bytes == len(log)


# --- progress and artifacts -----------------------------------------------------------------------


async def test_the_newest_progress_is_always_told(bench) -> None:
    running, recorder = await bench.start("progress", {"count": 20_000})
    await running.wait()
    last = recorder.progress[-1]
    assert (last.fraction, last.message, last.numbers) == (1.0, "step 20000", {"number": 19999})
    assert len(recorder.progress) < 1000, "coalesced"


async def test_the_temp_directory_is_emptied_behind_the_attempt(bench) -> None:
    """J12."""
    await bench.run("artifacts")
    assert [path for path in bench.state_dir.tmp.rglob("*") if path.is_file()] == []


async def test_artifacts_are_files_of_the_attempt(bench) -> None:
    running, recorder = await bench.start("artifacts")
    await running.wait()
    assert [(a.name, a.media_type, a.size_bytes) for a in recorder.artifacts] == [
        ("table/data.csv", "text/csv", 4),
        ("note.txt", "text/plain", 5),
    ]
    directory = bench.state_dir.job_artifacts(running.plan.job_id) / "1"
    assert (directory / "table" / "data.csv").read_text() == "a,b\n"


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "a/../../b", ".hidden", "", "a//b", "-x"])
async def test_an_artifact_cannot_leave_its_directory(bench, name) -> None:
    result = await bench.run("bad_artifact", {"name": name})
    assert isinstance(result.ending, Raised)
    assert "no name for an artifact" in result.ending.error.message


# --- usage ----------------------------------------------------------------------------------------


async def test_peak_memory_counts_the_whole_tree(bench) -> None:
    """J26: the child's memory, not the job's own."""
    result = await bench.run("child_eats_memory", {"megabytes": 150, "seconds": 0.6})
    assert result.usage.peak_rss_bytes > 150 << 20


async def test_cpu_time_counts_the_whole_tree(bench) -> None:
    result = await bench.run("burns_cpu", {"seconds": 0.4})
    assert 0.3 < result.usage.cpu_s < 3


async def test_a_tree_over_its_memory_limit_is_out_of_memory(bench) -> None:
    """J26: its own outcome, with evidence."""
    limits = Limits(memory_bytes=120 << 20, grace_s=5)
    result = await bench.run("eats_memory", {"megabytes": 300, "seconds": 30}, limits=limits)
    assert isinstance(result.ending, OutOfMemory)
    assert str(120 << 20) in result.ending.evidence
    assert result.kill is not None


async def test_the_timeline_is_in_order(bench) -> None:
    result = await bench.run("echo", claimed_ns=1)
    line = result.timeline
    assert 1 == line.claimed_ns < line.requested_ns <= line.forked_ns <= line.ran_ns
    assert line.ran_ns <= line.returned_ns <= line.ended_ns


async def test_the_inline_lane_is_refused(bench) -> None:
    from headway.core.errors import ConfigError

    with pytest.raises(ConfigError, match="inline"):
        await bench.run("echo", lane=Lane.INLINE)


async def test_results_are_json_that_the_standard_library_reads(bench) -> None:
    result = await bench.run("about")
    assert json.loads(result.ending.result)["attempt"] == 1

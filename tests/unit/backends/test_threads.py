"""Blocking calls in bounded daemon threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from headway.backends.threads import DaemonThreads


async def test_results_and_exceptions_come_back() -> None:
    threads = DaemonThreads(2)
    assert await threads.run(lambda: 1 + 1) == 2
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    threads.close()


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), StopIteration()])
async def test_what_would_leave_the_event_loop_is_a_plain_error(raised: BaseException) -> None:
    """Trap 8's cousin: SystemExit in a thread must still resolve its future."""

    def fail() -> None:
        raise raised

    threads = DaemonThreads(1)
    with pytest.raises(RuntimeError, match=type(raised).__name__):
        await asyncio.wait_for(threads.run(fail), 5)
    assert await threads.run(lambda: "still alive") == "still alive"
    threads.close()


async def test_no_more_run_at_once_than_the_limit() -> None:
    threads = DaemonThreads(3)
    lock, release = threading.Lock(), threading.Event()
    running, most = 0, 0
    three = threading.Semaphore(0)

    def hold() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        three.release()
        release.wait(5)
        with lock:
            running -= 1

    tasks = [asyncio.ensure_future(threads.run(hold)) for _ in range(9)]
    for _ in range(3):
        await asyncio.to_thread(three.acquire, timeout=5)
    release.set()
    await asyncio.gather(*tasks)
    assert most == 3
    threads.close()


async def test_threads_are_started_only_when_needed() -> None:
    threads = DaemonThreads(100)
    names = {await threads.run(lambda: threading.current_thread().name) for _ in range(20)}
    assert len(names) == 1
    threads.close()


def test_a_call_that_never_returns_does_not_keep_the_process() -> None:
    code = """
import asyncio, threading
from headway.backends.threads import DaemonThreads

async def main():
    threads = DaemonThreads(1)
    task = asyncio.ensure_future(threads.run(threading.Event().wait))
    await asyncio.sleep(0.05)
    task.cancel()
    threads.close()

asyncio.run(main())
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "ended")

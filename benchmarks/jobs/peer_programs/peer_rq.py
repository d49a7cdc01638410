"""RQ: a process forked for each job."""

from __future__ import annotations

import time
from pathlib import Path

from common import URL, latencies_ms, main, wait_with_children
from redis import Redis
from rq import Queue
from rq.command import send_stop_job_command
from rq.registry import FinishedJobRegistry


def nothing(n: int) -> int:
    return n


def obeys(notes: str) -> None:
    wait_with_children(notes)


def _queue() -> Queue:
    return Queue(connection=Redis.from_url(URL))


def prepare() -> None:
    _queue().connection.flushdb()


def latency(count: str) -> list[float]:
    queue = _queue()

    def once(number: int) -> None:
        result = queue.enqueue("peer_rq.nothing", number).latest_result(timeout=30)
        assert result is not None
        assert result.return_value == number

    return latencies_ms(int(count), once)


def rate(count: str) -> float:
    """Jobs a second, submitted in one batch."""
    prepare_registry = FinishedJobRegistry(queue=_queue())
    queue, wanted = _queue(), len(prepare_registry) + int(count)
    began_s = time.perf_counter()
    queue.enqueue_many([Queue.prepare_data("peer_rq.nothing", (n,)) for n in range(int(count))])
    while len(FinishedJobRegistry(queue=queue)) < wanted:
        time.sleep(0.02)
    return int(count) / (time.perf_counter() - began_s)


def cancel(notes: str, gap_s: str) -> float:
    """Start a job, wait until it has written its pids, stop it: when the stop was asked for."""
    Path(notes).touch()
    queue = _queue()
    job = queue.enqueue("peer_rq.obeys", notes)
    while not Path(notes).read_text().endswith("\n"):
        time.sleep(0.01)
    time.sleep(float(gap_s))
    began_s = time.monotonic()
    send_stop_job_command(queue.connection, job.id)
    return began_s


if __name__ == "__main__":
    main(prepare=prepare, latency=latency, rate=rate, cancel=cancel)

"""Celery: prefork, Redis as broker and for results."""

from __future__ import annotations

import time
from pathlib import Path

from celery import Celery
from common import URL, latencies_ms, main, wait_with_children
from redis import Redis

app = Celery("peer_celery", broker=f"{URL}/1", backend=f"{URL}/2")
app.conf.broker_connection_retry_on_startup = True


@app.task(name="nothing")
def nothing(n: int) -> int:
    return n


@app.task(name="obeys")
def obeys(notes: str) -> None:
    wait_with_children(notes)


def prepare() -> None:
    for number in (1, 2):
        Redis.from_url(f"{URL}/{number}").flushdb()


def latency(count: str) -> list[float]:
    def once(number: int) -> None:
        assert nothing.delay(number).get(timeout=30) == number

    return latencies_ms(int(count), once)


def rate(count: str) -> float:
    """Jobs a second, until every result is stored."""
    results = Redis.from_url(f"{URL}/2")
    wanted = results.dbsize() + int(count)
    began_s = time.perf_counter()
    for number in range(int(count)):
        nothing.delay(number)
    while results.dbsize() < wanted:
        time.sleep(0.02)
    return int(count) / (time.perf_counter() - began_s)


def cancel(notes: str, gap_s: str) -> float:
    """Start a job, wait until it has written its pids, stop it: when the stop was asked for."""
    Path(notes).touch()
    result = obeys.delay(notes)
    while not Path(notes).read_text().endswith("\n"):
        time.sleep(0.01)
    time.sleep(float(gap_s))
    began_s = time.monotonic()
    result.revoke(terminate=True, signal="SIGTERM")
    return began_s


if __name__ == "__main__":
    main(prepare=prepare, latency=latency, rate=rate, cancel=cancel)

"""P14: from asking for a cancel to the death of the job's last process.

    python benchmarks/jobs/cancels.py [--jobs 10]

The job has two children, one of them in a session of its own. `obeys` ends on SIGTERM; of `ignores`
nobody does, and it is killed after a grace of 0.5 s. The clock runs from the call of the SDK until
the pidfd of the last process tells of its death. Peers: their stop, and who outlives it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import peers
from harness import (
    ROUNDS,
    Rounds,
    header,
    is_alive,
    log_lines,
    row,
    server,
    title,
    verdict,
    wait_until,
)

from headway.client import Client

OBEYS_MS, OVER_GRACE_MS = 100.0, 100.0
GRACE_MS = 500.0
LIMIT_S = 10.0


class Deaths:
    """Waits for the death of processes."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._handles = {os.pidfd_open(pid): pid for pid in pids}
        self._poll = select.poll()
        for handle in self._handles:
            self._poll.register(handle, select.POLLIN)

    def wait(self, limit_s: float = LIMIT_S) -> float:
        """When (monotonic seconds) the last one died; inf when some live after `limit_s`."""
        until_s = time.monotonic() + limit_s
        left = set(self._handles)
        while left:
            rest_ms = (until_s - time.monotonic()) * 1000
            if rest_ms <= 0:
                break
            for handle, _ in self._poll.poll(rest_ms):
                self._poll.unregister(handle)
                left.discard(handle)
        died_s = time.monotonic()
        for handle in self._handles:
            os.close(handle)
        return died_s if not left else float("inf")


def cancelled_ms(client: Client, operation: str) -> float:
    job = client.submit(operation)
    [line] = log_lines(client, job.id, 1)
    deaths = Deaths([int(pid) for pid in line.split()])
    time.sleep(0.05)
    began_s = time.monotonic()
    asking = threading.Thread(target=client.cancel, args=(job.id,))
    asking.start()
    died_s = deaths.wait()
    asking.join()
    ended = client.wait(job.id, timeout_s=LIMIT_S)
    assert ended.outcome == "cancelled", ended
    return (died_s - began_s) * 1000


def peer_row(peer: peers.Peer, jobs: int) -> None:
    """A peer's stop: until the job's own process is dead, and how many children live on."""
    took, survivors = Rounds(), 0
    for _ in range(jobs):
        with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as threads:
            notes = Path(directory) / "pids"
            notes.touch()
            asking = threads.submit(peer.ask, "cancel", notes, 0.3)
            wait_until(lambda notes=notes: notes.read_text().endswith("\n"), LIMIT_S)  # type: ignore[misc]
            main_pid, *children = map(int, notes.read_text().split())
            died_s = Deaths([main_pid]).wait()
            took.add((died_s - asking.result()) * 1000)
            time.sleep(0.3)
            left = [pid for pid in children if is_alive(pid)]
            survivors += len(left)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    row(f"{peer}: its main process dead", took, f"{survivors / jobs:g} of 2", jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=10)
    jobs = parser.parse_args().jobs
    title("P14: cancel to the whole tree dead")
    obeys, over = Rounds(), Rounds()
    with (
        server() as measured,
        measured.client() as client,
        peers.running(["rq", "celery"]) as others,
    ):
        for _ in range(ROUNDS * jobs):
            obeys.add(cancelled_ms(client, "obeys"))
        for _ in range(jobs):
            over.add(cancelled_ms(client, "ignores") - GRACE_MS)
        header("what", "ms: median (spread)", "children that live on", "cancels")
        row("Headway: tree dead, SIGTERM is obeyed", obeys, "0 of 2", ROUNDS * jobs)
        row("Headway: tree dead, nobody obeys, beyond the grace", over, "0 of 2", jobs)
        for peer in others.values():
            peer_row(peer, min(jobs, 5))
    text = f"{obeys.median:.0f} ms (largest {max(obeys.values):.0f}), at most {OBEYS_MS:.0f}"
    verdict("P14", text, max(obeys.values) <= OBEYS_MS)
    largest = max(over.values)
    text = f"grace {over.median:+.0f} ms (largest {largest:+.0f}), at most +{OVER_GRACE_MS:.0f}"
    verdict("P14", text, max(over.values) <= OVER_GRACE_MS)


if __name__ == "__main__":
    main()

"""Followers: what 200 of them, a log of 1 GiB and 100,000 lines a second do to everybody else.

    python benchmarks/jobs/followers.py [--mib 1024] [--followers 200]

Somebody else asks for a job all the while; what that takes is compared with an idle server's, in
one run. Beside it: whether every follower got every byte, and the largest memory of the API and the
worker.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from harness import Server, header, row, server, title

from headway.client import Client

HERE = Path(__file__).parent
MIB = 1024 * 1024
PAUSE_S = 0.01


@dataclass
class Seen:
    """What one load did."""

    asked_ms: list[float] = field(default_factory=list)
    api_mib: float = 0.0
    worker_mib: float = 0.0

    def quantile(self, share: float) -> float:
        ordered = sorted(self.asked_ms)
        return ordered[min(len(ordered) - 1, round(share * len(ordered)))]


async def follow(port: int, job_id: str) -> int:
    """Bytes of log that a follower is given until the job has ended."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MIB)
    path = f"/v1/jobs/{job_id}/logs/stream"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode())
    got, rest = 0, b""
    while data := await reader.read(MIB):
        *events, rest = (rest + data).split(b"\n\n")
        for event in events:
            text = event.rpartition(b"\r\n")[2]  # what frames a chunk stands on lines of its own
            if text.startswith(b"event: log"):
                got += len(json.loads(text.partition(b"\ndata: ")[2])["text"].encode())
            elif text.startswith(b"event: end"):
                writer.transport.abort()
                return got
    raise SystemExit("a follower's connection broke")


async def ask(port: int, job_id: str, until: asyncio.Task[list[int]], seen: Seen) -> None:
    """Ask for a job over one connection again and again while the load is on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    request = f"GET /v1/jobs/{job_id} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n".encode()
    while not until.done():
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        await reader.readexactly(length)
        seen.asked_ms.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE_S)
    writer.close()


async def watch(
    processes: list[psutil.Process], until: asyncio.Task[list[int]], seen: Seen
) -> None:
    while not until.done():
        api, worker = (process.memory_info().rss / MIB for process in processes)
        seen.api_mib, seen.worker_mib = max(seen.api_mib, api), max(seen.worker_mib, worker)
        await asyncio.sleep(0.05)


async def under(
    measured: Server, bystander: str, load: Awaitable[list[int]]
) -> tuple[Seen, list[int]]:
    """Ask and watch while the load is on; what was seen, and what its followers were given."""
    worker = next(
        child
        for child in psutil.Process(measured.process.pid).children()
        if "worker" in " ".join(child.cmdline())
    )
    loading = asyncio.ensure_future(load)
    seen = Seen()
    processes = [psutil.Process(measured.process.pid), worker]
    await asyncio.gather(
        ask(measured.port, bystander, loading, seen), watch(processes, loading, seen), loading
    )
    return seen, loading.result()


async def all_follow(port: int, job_id: str, followers: int) -> list[int]:
    return list(await asyncio.gather(*(follow(port, job_id) for _ in range(followers))))


async def idle() -> list[int]:
    await asyncio.sleep(5)
    return []


def log_bytes(measured: Server, job_id: str) -> int:
    return (measured.state_dir / "logs" / job_id / "1.log").stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--followers", type=int, default=200)
    given = parser.parse_args()
    title("Followers: what they do to the others")
    flags = ("--operations", str(HERE / "log_operations.py"), "--long", "4")
    with server(*flags) as measured, measured.client() as client:
        _measure(measured, client, given.mib, given.followers)


def _measure(measured: Server, client: Client, mib: int, followers: int) -> None:
    bystander = client.submit("rests").id
    loads = (
        (f"{followers} followers, 20 lines/s", "murmurs", {"seconds": 10}, followers),
        (f"1 follower, {mib} MiB", "writes", {"mib": mib}, 1),
        ("1 follower, 100,000 lines/s", "chatters", {"lines_per_s": 100_000, "seconds": 8}, 1),
    )
    header("load", "GET p50, ms", "p99, ms", "p50 to idle", "API, MiB", "worker, MiB", "complete")
    base, _ = asyncio.run(under(measured, bystander, idle()))
    _show("idle", base, base, "")
    for name, operation, given, count in loads:
        job = client.submit(operation, given).id
        followed = all_follow(measured.port, job, count)
        seen, got = asyncio.run(under(measured, bystander, followed))
        whole = got == [log_bytes(measured, job)] * count
        _show(name, seen, base, "yes" if whole else "NO")
    client.cancel(bystander)


def _show(name: str, seen: Seen, base: Seen, complete: str) -> None:
    numbers = (
        seen.quantile(0.5), seen.quantile(0.99), seen.quantile(0.5) / base.quantile(0.5),
        seen.api_mib, seen.worker_mib,
    )  # fmt: skip
    row(name, *(f"{number:.1f}" for number in numbers), complete)


if __name__ == "__main__":
    main()

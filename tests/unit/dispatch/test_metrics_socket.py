"""Each worker answers with its metrics on a socket of its own (J15)."""

from __future__ import annotations

import os
from datetime import timedelta

from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.dispatch.metrics_socket import MetricsSocket, read_worker_metrics


def socket(state_dir: StateDir, name: str, text: bytes) -> MetricsSocket:
    return MetricsSocket(state_dir, name, lambda: text, SystemClock())


async def test_every_worker_answers_under_its_name(state_dir: StateDir) -> None:
    state_dir.create()
    assert await read_worker_metrics(state_dir) == {}
    first = socket(state_dir, "worker", b"first 1\n" * 100_000)
    second = socket(state_dir, "worker-2", b"second 1\n")
    await first.open()
    await second.open()
    texts = await read_worker_metrics(state_dir)
    assert texts == {"worker": "first 1\n" * 100_000, "worker-2": "second 1\n"}
    await first.close()
    await first.close()
    assert await read_worker_metrics(state_dir) == {"worker-2": "second 1\n"}
    await second.close()
    assert await read_worker_metrics(state_dir) == {}


async def test_a_name_stays_with_the_first_worker_that_has_it(state_dir: StateDir) -> None:
    state_dir.create()
    first, second = socket(state_dir, "worker", b"1"), socket(state_dir, "worker", b"2")
    await first.open()
    await second.open()
    assert await read_worker_metrics(state_dir) == {"worker": "1"}
    await second.close()
    assert await read_worker_metrics(state_dir) == {"worker": "1"}
    await first.close()


async def test_a_killed_workers_socket_is_no_obstacle(state_dir: StateDir) -> None:
    state_dir.create()
    dead, living = socket(state_dir, "worker", b""), socket(state_dir, "worker", b"living 1\n")
    await dead.open()
    assert dead._server is not None
    dead._server.close()
    await living.open()
    assert await read_worker_metrics(state_dir) == {"worker": "living 1\n"}
    await living.close()


async def test_sockets_of_workers_that_were_killed_long_ago_are_removed(
    state_dir: StateDir,
) -> None:
    state_dir.create()
    for name in ("worker-1", "worker-2"):
        dead = socket(state_dir, name, b"")
        await dead.open()
        assert dead._server is not None
        dead._server.close()
    old, young = (state_dir.metrics_sockets / f"worker-{n}.sock" for n in (1, 2))
    long_ago = (SystemClock().now() - timedelta(hours=1)).timestamp()
    os.utime(old, (long_ago, long_ago))
    living = socket(state_dir, "worker", b"living 1\n")
    await living.open()
    assert not old.exists()
    assert young.exists(), "it may be one that is just being opened"
    await living.close()

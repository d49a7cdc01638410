from __future__ import annotations

from headway.core.statedir import StateDir
from headway.dispatch.metrics_socket import MetricsSocket, read_worker_metrics


async def test_the_first_worker_answers_until_it_ends(state_dir: StateDir) -> None:
    state_dir.create()
    assert await read_worker_metrics(state_dir) is None
    first = MetricsSocket(state_dir, lambda: b"first 1\n" * 100_000)
    second = MetricsSocket(state_dir, lambda: b"second 1\n")
    await first.open()
    await second.open()
    assert await read_worker_metrics(state_dir) == "first 1\n" * 100_000
    await second.close()
    assert await read_worker_metrics(state_dir) is not None
    await first.close()
    await first.close()
    assert await read_worker_metrics(state_dir) is None


async def test_a_killed_workers_socket_is_no_obstacle(state_dir: StateDir) -> None:
    state_dir.create()
    dead = MetricsSocket(state_dir, lambda: b"")
    await dead.open()
    assert dead._server is not None
    dead._server.close()
    living = MetricsSocket(state_dir, lambda: b"living 1\n")
    await living.open()
    assert await read_worker_metrics(state_dir) == "living 1\n"
    await living.close()

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from headway.core.statedir import StateDir
from headway.dispatch.unix_doorbell import UnixDoorbell


async def two(state_dir: StateDir) -> tuple[UnixDoorbell, UnixDoorbell]:
    one, other = UnixDoorbell(state_dir), UnixDoorbell(state_dir)
    await one.open()
    await other.open()
    return one, other


async def test_a_ring_wakes_its_topic_here_and_in_other_processes(state_dir: StateDir) -> None:
    one, other = await two(state_dir)
    with one.listen("work") as mine, other.listen("work", "x") as theirs, other.listen("y") as no:
        one.ring("work")
        assert await mine.wait(5)
        assert await theirs.wait(5)
        assert not await no.wait(0.01)
    await one.close()
    await other.close()


async def test_a_ring_for_later_goes_with_the_next_one_or_soon_by_itself(
    state_dir: StateDir,
) -> None:
    one, other = await two(state_dir)
    with one.listen("a") as mine, other.listen("a") as theirs, other.listen("b") as third:
        one.ring_later("a")
        assert await mine.wait(5)
        assert await theirs.wait(5)
        one.ring_later("a")
        one.ring("b")
        assert await third.wait(5)
        assert await theirs.wait(0)  # it came in the same datagram
        one.ring_later("b")
        await one.close()
        assert await third.wait(5)  # rung by the closing, whatever the timer did
    await other.close()


async def test_a_ring_before_the_wait_is_kept_and_many_wake_once(doorbell: UnixDoorbell) -> None:
    with doorbell.listen("a", "b") as bell:
        for _ in range(5):
            doorbell.ring("a", "b")
        assert await bell.wait(5)
        assert not await bell.wait(0.01)


async def test_the_socket_of_a_dead_process_is_removed(state_dir: StateDir) -> None:
    """Trap 20: one lock file per job, never removed."""
    one, other = await two(state_dir)
    assert other._socket is not None
    asyncio.get_running_loop().remove_reader(other._socket)
    other._socket.close()  # as a killed process leaves it: the path stays
    assert len(os.listdir(state_dir.bells)) == 2
    one.ring("work")
    assert os.listdir(state_dir.bells) == [one._name]
    await one.close()
    assert os.listdir(state_dir.bells) == []


async def test_a_listener_that_does_not_listen_costs_the_ringer_nothing(
    state_dir: StateDir,
) -> None:
    one, other = await two(state_dir)
    assert other._socket is not None
    asyncio.get_running_loop().remove_reader(other._socket)
    for _ in range(10_000):  # its buffer is full long before
        one.ring("work")
    await one.close()
    other._socket.close()


async def test_closed_bells_are_forgotten(doorbell: UnixDoorbell) -> None:
    for n in range(100):
        doorbell.listen(f"job:{n}").close()
    assert doorbell._board._bells == {}


async def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    deep = StateDir(tmp_path / ("d" * 100) / ("e" * 100))
    one, other = await two(deep)
    with other.listen("work") as bell:
        one.ring("work")
        assert await bell.wait(5)
    for doorbell in (one, other):
        await doorbell.close()
        await doorbell.close()


async def test_ringing_when_closed_or_never_opened_is_fine(state_dir: StateDir) -> None:
    doorbell: Any = UnixDoorbell(state_dir)
    with doorbell.listen("a") as bell:
        doorbell.ring("a")
        assert await bell.wait(1)

from __future__ import annotations

from headway.core.statedir import StateDir
from headway.dispatch.unix_doorbell import UnixDoorbell


async def test_a_gatherer_hears_every_topic_with_its_prefix_also_of_other_processes(
    state_dir: StateDir,
) -> None:
    state_dir.create()
    here, there = UnixDoorbell(state_dir), UnixDoorbell(state_dir)
    await here.open()
    await there.open()
    with here.gather("job:") as gatherer:
        there.ring("job:a", "work")
        here.ring("job:b")
        rung: set[str] = set()
        while rung != {"a", "b"}:
            assert await gatherer.wait(10)
            rung |= gatherer.take() or set()
        here.ring("log:a:1")
        assert not await gatherer.wait(0)
    here.ring("job:c")
    assert gatherer.take() == set()
    await here.close()
    await there.close()


async def test_too_many_topics_become_one_answer_and_bounded_memory(state_dir: StateDir) -> None:
    state_dir.create()
    doorbell = UnixDoorbell(state_dir)
    with doorbell.gather("job:", limit=3) as gatherer:
        doorbell.ring(*(f"job:{number}" for number in range(1000)))
        assert len(gatherer._topics_rung) <= 4
        assert gatherer.take() is None
        doorbell.ring("job:1")
        assert gatherer.take() == {"1"}

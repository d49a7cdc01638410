from __future__ import annotations

from headway.sim.kv_blocks import BlockPool, block_key


def test_a_key_covers_everything_before_it() -> None:
    first, other = block_key(0, ["a"]), block_key(0, ["b"])
    assert block_key(first, ["c"]) != block_key(other, ["c"])
    assert block_key(first, ["c"]) == block_key(first, ["c"])


def test_released_blocks_stay_found_until_their_room_is_needed() -> None:
    pool = BlockPool(3)
    assert pool.take(2)
    assert pool.publish(1)
    assert pool.publish(2)
    pool.release([1, 2], private=0)
    assert pool.held == 0
    assert pool.match([1, 2, 3]) == 2
    assert pool.take(2)
    # Later blocks of a prefix go first: the earlier ones still serve other prompts.
    assert pool.match([1, 2]) == 1


def test_shared_blocks_count_once() -> None:
    pool = BlockPool(2)
    assert pool.take(1)
    assert pool.publish(1)
    pool.hold([1])
    assert pool.held == 1
    pool.release([1], private=0)
    assert pool.held == 1
    pool.release([1], private=0)
    assert pool.held == 0


def test_takes_all_or_nothing() -> None:
    pool = BlockPool(2)
    assert not pool.take(3)
    assert pool.obtainable == 2


def test_a_double_stays_private() -> None:
    pool = BlockPool(4)
    assert pool.take(2)
    assert pool.publish(1)
    assert not pool.publish(1)
    assert pool.held == 2

"""The simulated key-value cache: a bounded number of blocks, shared by equal prefixes.

Pure bookkeeping. A full block is known by a key that covers all tokens up to its end; a block that
nobody holds keeps its contents until its room is needed, oldest use first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

BlockKey = int


def block_key(before: BlockKey, tokens: Sequence[str]) -> BlockKey:
    """The key of a full block of `tokens` that follows the block `before` (0: none)."""
    return hash((before, tuple(tokens)))


class BlockPool:
    """Counts blocks. Held ones are shared (by key) or private; idle ones may be taken again.

    Args:
        capacity: Blocks there are, > 0.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._private = 0
        self._shared: dict[BlockKey, int] = {}
        self._idle: OrderedDict[BlockKey, None] = OrderedDict()

    @property
    def held(self) -> int:
        """Blocks that some sequence holds."""
        return self._private + len(self._shared)

    @property
    def obtainable(self) -> int:
        """Blocks that can be had: empty ones, and idle ones whose contents go."""
        return self.capacity - self.held

    def match(self, keys: Sequence[BlockKey]) -> int:
        """How many blocks from the start of `keys` are in the cache."""
        for count, key in enumerate(keys):
            if key not in self._shared and key not in self._idle:
                return count
        return len(keys)

    def idle_among(self, keys: Sequence[BlockKey]) -> int:
        """How many of `keys` nobody holds: holding them makes as many fewer obtainable."""
        return sum(key in self._idle for key in keys)

    def hold(self, keys: Sequence[BlockKey]) -> None:
        """Hold cached blocks, as `match` found them."""
        for key in keys:
            self._idle.pop(key, None)
            self._shared[key] = self._shared.get(key, 0) + 1

    def take(self, count: int) -> bool:
        """Hold `count` private blocks; False, and nothing changes, when there are too few."""
        if count > self.obtainable:
            return False
        self._private += count
        while self.held + len(self._idle) > self.capacity:
            self._idle.popitem(last=False)
        return True

    def publish(self, key: BlockKey) -> bool:
        """Turn one private block into a shared one; False when another has the same contents."""
        if key in self._shared or key in self._idle:
            return False
        self._private -= 1
        self._shared[key] = 1
        return True

    def release(self, keys: Sequence[BlockKey], private: int) -> None:
        """Let go of shared blocks, whose contents stay as long as there is room, and private ones.

        The last are let go first, so that a prefix outlives what depends on it.
        """
        self._private -= private
        for key in reversed(keys):
            self._shared[key] -= 1
            if not self._shared[key]:
                del self._shared[key]
                self._idle[key] = None

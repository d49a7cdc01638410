"""The seam between the server and an engine."""

from __future__ import annotations

from typing import Protocol

import msgspec

from headway.sim.batching import BatchingStatistics
from headway.sim.delivery import Delivery


class Generation(msgspec.Struct, kw_only=True, eq=False):
    """One reply to be made."""

    delivery: Delivery
    arrival_ns: int
    prompt: list[str]
    """The prompt's tokens."""
    output_tokens: int


class Engine(Protocol):
    """Decides when each token of each reply exists, and tells its delivery."""

    immediate: bool
    """Whether every reply is there at once, so that none needs to wait for the engine."""

    def start(self, generation: Generation) -> None:
        """Begin to make the tokens of `generation`."""
        ...

    def refusal(self, prompt_tokens: int, output_tokens: int) -> str | None:
        """Why a reply of this size could never be made, if so."""
        ...

    def statistics(self) -> BatchingStatistics:
        """Its queue, batch and cache."""
        ...

    def cancel(self, generation: Generation) -> None:
        """Stop making tokens that nobody waits for."""
        ...

"""The seam between the server and an engine."""

from __future__ import annotations

from typing import Protocol

import msgspec

from headway.sim.delivery import Delivery


class Generation(msgspec.Struct, kw_only=True):
    """One reply to be made."""

    delivery: Delivery
    arrival_ns: int
    prompt: list[str]
    """The prompt's tokens."""
    output_tokens: int


class Engine(Protocol):
    """Decides when each token of each reply exists, and tells its delivery."""

    def start(self, generation: Generation) -> None:
        """Begin to make the tokens of `generation`."""
        ...

    def cancel(self, generation: Generation) -> None:
        """Stop making tokens that nobody waits for."""
        ...

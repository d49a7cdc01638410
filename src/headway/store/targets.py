"""The registered targets, as the store keeps them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One registered target.

    Attributes:
        url: In normal form; what lies below it may be measured too.
        reach: How far into networks of one's own its addresses may lie: public, private, loopback.
        workspaces: Who may measure it.
        max_rate_per_s: Most requests a second that a profile may ask for; None: no ceiling.
        max_streams: Most requests in flight; None: no ceiling.
        lock_group: Targets of one group are measured one at a time, as they share a GPU.
        health_path: What is asked before a run begins.
        secret: Name of the secret, in the job's workspace, that is sent as the API key when a run
            names no other.
    """

    name: str
    url: str
    reach: str
    workspaces: tuple[str, ...]
    max_rate_per_s: float | None = None
    max_streams: int | None = None
    lock_group: str
    health_path: str = "/health"
    secret: str | None = None
    changed_at: datetime
    changed_by: str


class TargetStore(Protocol):
    """The registry. All methods may raise `StoreUnavailable`."""

    async def put_target(self, target: TargetRow) -> TargetRow:
        """Register a target, or change it; the row as it is now, with the time of the change."""
        ...

    async def targets(self) -> list[TargetRow]:
        """All of them by name."""
        ...

    async def target(self, name: str) -> TargetRow | None:
        """One of them."""
        ...

    async def remove_target(self, name: str) -> bool:
        """False when there was none."""
        ...

"""What a workspace gives to all of its jobs: environment variables and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

import msgspec


class OverlayRow(msgspec.Struct, frozen=True, kw_only=True):
    """The overlay of one workspace, validated when it was set.

    Attributes:
        env: Under the variables that a job sets itself.
        config: By operation; under the configuration that a job sets itself.
    """

    workspace: str
    env: Mapping[str, str] = {}
    config: Mapping[str, Mapping[str, Any]] = {}
    changed_at: datetime | None = None
    changed_by: str | None = None


class OverlayStore(Protocol):
    """The overlays. All methods may raise `StoreUnavailable`."""

    async def put_overlay(self, overlay: OverlayRow) -> OverlayRow:
        """Replace a workspace's overlay; the row as it is now, with the time of the change."""
        ...

    async def overlays(self) -> list[OverlayRow]:
        """All of them."""
        ...

"""Measures what only a walk over the state directory can tell."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from headway.core.statedir import StateDir
from headway.dispatch.capacity import MemoryGauge
from headway.dispatch.metrics import AttemptMetrics


class HostStatistics:
    """Sizes of the state directory's parts, and the memory that is left, as metrics."""

    def __init__(self, state_dir: StateDir, metrics: AttemptMetrics) -> None:
        self._state_dir = state_dir
        self._metrics = metrics

    async def run(self) -> None:
        """Measure once."""
        self._metrics.host(MemoryGauge().available_bytes(), await asyncio.to_thread(self._sizes))

    def _sizes(self) -> dict[str, int]:
        state_dir = self._state_dir
        parts = {
            part.name: size_bytes(part)
            for part in (state_dir.logs, state_dir.artifacts, state_dir.results, state_dir.tmp)
        }
        parts["database"] = sum(
            path.stat().st_size for path in state_dir.root.glob(f"{state_dir.database.name}*")
        )
        return parts


def size_bytes(directory: Path) -> int:
    """Bytes of all files below; what vanishes during the walk does not count."""
    total = 0
    for path, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(path, name)).st_size
    return total

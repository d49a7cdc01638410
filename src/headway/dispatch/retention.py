"""Removes ended jobs with everything that is kept of them (J22)."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from headway.core.statedir import StateDir
from headway.store.jobs import RetentionRule
from headway.store.store import Store

_log = logging.getLogger(__name__)

_LOOK = 20_000
"""Ids asked for at a time. A limit by number or size reads the whole index of the ended jobs each
time: 0.1 s for 50,000 of them, so looking once for every 200 took longer the more there were."""
_BATCH = 50
"""Jobs removed in one commit. Claims wait for it: with 200 they waited four times as long."""


class Retention:
    """Applies retention rules.

    Args:
        store: Has the jobs.
        state_dir: Has their logs, artifacts, results and temp directories.
        rules: A job goes when any rule lets it go.
    """

    def __init__(self, store: Store, state_dir: StateDir, rules: Sequence[RetentionRule]) -> None:
        self._store = store
        self._state_dir = state_dir
        self._rules = rules

    async def run(self) -> None:
        """Remove, in batches, all that may go now."""
        removed = 0
        for rule in self._rules:
            more = True
            while more:
                expired = await self._store.expired_jobs(rule, _LOOK)
                deleted = await self._remove(expired)
                removed += deleted
                # What ends meanwhile is for the next run: a busy server would never be done.
                more = deleted > 0 and len(expired) == _LOOK
        if removed:
            _log.info("retention removed %d jobs", removed)

    async def _remove(self, expired: Sequence[str]) -> int:
        removed = 0
        for start in range(0, len(expired), _BATCH):
            batch = expired[start : start + _BATCH]
            # Files first: if this process dies between the two, the rows still name what is left
            # to do, and nothing is orphaned.
            await asyncio.to_thread(self._remove_files, batch)
            removed += await self._store.delete_jobs(batch)
        return removed

    def _remove_files(self, job_ids: Sequence[str]) -> None:
        for job_id in job_ids:
            for path in self._places(job_id):
                shutil.rmtree(path, ignore_errors=True)

    def _places(self, job_id: str) -> list[Path]:
        state_dir = self._state_dir
        return [
            state_dir.job_logs(job_id),
            state_dir.job_artifacts(job_id),
            state_dir.job_results(job_id),
            state_dir.job_work(job_id),
            *state_dir.tmp.glob(f"{job_id}-*"),
        ]

"""Removes ended jobs with everything that is kept of them (J22)."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from headway.core.statedir import StateDir
from headway.store.store import Store
from headway.store.values import RetentionRule

_log = logging.getLogger(__name__)

_BATCH = 200


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
            while expired := await self._store.expired_jobs(rule, _BATCH):
                # Files first: if this process dies between the two, the rows still name what is
                # left to do, and nothing is orphaned.
                await asyncio.to_thread(self._remove_files, expired)
                deleted = await self._store.delete_jobs(expired)
                removed += deleted
                if not deleted:
                    break
        if removed:
            _log.info("retention removed %d jobs", removed)

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

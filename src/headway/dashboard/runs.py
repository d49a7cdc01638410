"""The runs that this server has made: jobs of the operation `bench` with their results."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headway.api.job_access import JobAccess
from headway.api.views import job_view
from headway.client.models import Job
from headway.dashboard.job_parts import BENCH
from headway.operations.result import BenchResult
from headway.store.jobs import JobQuery, JobRow, Payload

MAX_RUNS = 300
"""The newest ones; older runs are found by the list of jobs."""
MAX_KEPT = 2_000


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        job: Its job.
        spec: What was asked, as the job's input says.
        result: Its figures; None while it has none.
    """

    job: Job
    spec: dict[str, Any]
    result: BenchResult | None

    @property
    def likeness(self) -> str:
        """Equal for runs that may stand in one chart: same model, same requests."""
        target = self.spec.get("target") or {}
        model = self.result.model if self.result else target.get("model")
        parts = [model, self.spec.get("backend"), self.spec.get("inputs")]
        return json.dumps(parts, sort_keys=True)


class Runs:
    """Finds the runs of a workspace.

    What has ended changes no more and is read once: a page of 300 runs would else cost 600 reads
    (0.4 s on a busy machine) each time that it is looked at.
    """

    def __init__(self, access: JobAccess) -> None:
        self._access = access
        self._ended: dict[str, Run] = {}

    async def newest(self, workspace: str) -> list[Run]:
        """The newest runs, newest first."""
        query = JobQuery(operation=BENCH, workspace=workspace, limit=MAX_RUNS)
        page = await self._access.store.list_jobs(query)
        runs = [await self._run(row) for row in page.jobs]
        if len(self._ended) > MAX_KEPT:
            self._ended = {run.job.id: run for run in runs if run.job.state.is_terminal}
        return runs

    async def _run(self, row: JobRow) -> Run:
        known = self._ended.get(row.id)
        if known is not None:
            return known
        payload = await self._access.store.payload(row.id)
        stored = await self._access.store.result(row.id) if row.state.is_terminal else None
        run = Run(job_view(row), _object(payload), _result(None if stored is None else stored.json))
        if row.state.is_terminal:
            self._ended[row.id] = run
        return run


def run_directory(access: JobAccess, job: Job) -> Path:
    """Where the files of a run's last attempt are: a run directory, as far as it got."""
    return access.state_dir.job_artifacts(job.id) / str(job.attempt)


def _object(payload: Payload | None) -> dict[str, Any]:
    value = {} if payload is None else json.loads(payload.input_json)
    return value if isinstance(value, dict) else {}


def _result(text: str | None) -> BenchResult | None:
    if text is None:
        return None
    try:
        return BenchResult.model_validate_json(text)
    except ValidationError:
        return None  # of a version that told other figures

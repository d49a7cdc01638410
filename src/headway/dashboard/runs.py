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
from headway.core.states import JobState
from headway.dashboard.job_parts import BENCH
from headway.operations.result import BenchResult
from headway.store.values import JobQuery, Payload

MAX_RUNS = 500
"""The newest ones; older runs are found by the list of jobs."""


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


async def find_runs(access: JobAccess, workspace: str, limit: int = MAX_RUNS) -> list[Run]:
    """The runs of a workspace, newest first."""
    query = JobQuery(operation=BENCH, workspace=workspace, limit=limit)
    page = await access.store.list_jobs(query)
    runs = []
    for row in page.jobs:
        payload = await access.store.payload(row.id)
        stored = await access.store.result(row.id) if row.state is JobState.SUCCEEDED else None
        text = None if stored is None else stored.json
        runs.append(Run(job_view(row), _object(payload), _result(text)))
    return runs


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

"""Retention as it is set up in the server's file: each workspace by its own rule (J22)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from job_servers import OPERATIONS

from headway.api.serve_settings import settings_from
from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.dispatch.worker_process import WorkerProcess
from headway.store.attempts import Finish
from headway.store.jobs import JobQuery
from headway.store.sqlite.store import SqliteStore
from headway.store.submissions import NewJob

CONFIG = """
retention:
  cron: "* * * * * *"     # every second
  max_jobs: 1
  workspaces:
    archive: {}
    scratch: {max_age_s: 0.001}
"""
JOBS_OF_EACH = 3


@pytest.fixture
def state_dir(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state")


async def ended_jobs(store: SqliteStore, state_dir: StateDir) -> None:
    """Three ended jobs, with a log, in each of four workspaces."""
    for workspace in ("archive", "scratch", "lab", "office"):
        job = NewJob(operation="echo", lane="long", input_json="{}", workspace=workspace)
        await store.submit([job] * JOBS_OF_EACH)
    for claimed in await store.claim("w", {"long": 100}, 60):
        state_dir.job_logs(claimed.job.id).mkdir(parents=True)
        await store.end_attempt(claimed.claim, Finish(outcome=Outcome.FAILED))


async def kept(store: SqliteStore) -> Counter[str]:
    page = await store.list_jobs(JobQuery(limit=100))
    return Counter(row.workspace for row in page.jobs)


async def test_a_workspace_with_a_rule_of_its_own_is_under_no_other(
    tmp_path: Path, state_dir: StateDir
) -> None:
    """Everything of `archive` stays, `scratch` is emptied, the general rule counts the others."""
    config = tmp_path / "serve.yaml"
    config.write_text(CONFIG)
    flags = {"operations": (str(OPERATIONS),), "state_dir": state_dir.root}
    store = SqliteStore(state_dir, SystemClock(), random.Random(1))
    await store.open()
    await ended_jobs(store, state_dir)
    worker = WorkerProcess(settings_from(config, flags).worker(), SystemClock())
    await worker.start()
    try:
        async with asyncio.timeout(60):
            while (await kept(store)).total() > JOBS_OF_EACH + 1:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
        left = await kept(store)
        assert (left["archive"], left["scratch"]) == (JOBS_OF_EACH, 0)
        assert left["lab"] + left["office"] == 1, "the newest of all that have no own rule"
        logs = len(list(state_dir.logs.iterdir()))
        assert logs == left.total(), "logs go with their jobs"
    finally:
        await worker.stop()
        await store.close()


def test_rules_that_cannot_be_are_refused(tmp_path: Path) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text("retention: {workspaces: {lab: {max_jobs: -1}}}\n")
    with pytest.raises(ConfigError, match=r"retention\.workspaces\.lab\.max_jobs"):
        settings_from(config, {"operations": ("ops",), "state_dir": tmp_path})

"""Reads everything that a run has left, when nothing of it runs any more."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from headway.chaos.history import StoredJob
from headway.chaos.journal import digest
from headway.core.clock import Clock
from headway.core.statedir import StateDir
from headway.core.states import JobState
from headway.store.events import EventKind
from headway.store.jobs import Event, JobQuery, JobRow, StoredResult
from headway.store.sqlite.store import SqliteStore
from headway.store.store import Store

_PAGE = 1000
_EVENTS = 1000
_LIVE = (JobState.PENDING, JobState.RUNNING)


class AttemptFiles(Mapping[int, bytes]):
    """Files of a directory that are named by attempts, read when they are asked for.

    Args:
        directory: It need not exist.
        suffix: Behind the attempt's number.
    """

    def __init__(self, directory: Path, suffix: str) -> None:
        self._directory = directory
        self._suffix = suffix

    def __getitem__(self, attempt: int) -> bytes:
        try:
            return (self._directory / f"{attempt}{self._suffix}").read_bytes()
        except FileNotFoundError:
            raise KeyError(attempt) from None

    def __iter__(self) -> Iterator[int]:
        names = (path.name.removesuffix(self._suffix) for path in _inside(self._directory))
        return iter(sorted(int(name) for name in names if name.isdigit()))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Evidence:
    """A state directory, read through the store's own interface.

    Args:
        state_dir: The server's.
        clock: As for the store.
    """

    def __init__(self, state_dir: StateDir, clock: Clock) -> None:
        self._state_dir = state_dir
        self._clock = clock

    async def unended(self) -> int:
        """How many jobs have not ended; the server may run."""
        store = await self._open()
        try:
            return len([row async for row in _rows(store, _LIVE)])
        finally:
            await store.close()

    async def jobs(self) -> dict[str, StoredJob]:
        """Every job with all that is kept of it."""
        store = await self._open()
        try:
            return {row.id: await self._stored(store, row) async for row in _rows(store, ())}
        finally:
            await store.close()

    def logs(self, job_id: str) -> AttemptFiles:
        """The logs of a job."""
        return AttemptFiles(self._state_dir.job_logs(job_id), ".log")

    def leftovers(self, jobs: dict[str, StoredJob]) -> tuple[str, ...]:
        """Files that a stopped server has no use for."""
        state = self._state_dir
        found = [f"{path} (a temp directory)" for path in _inside(state.tmp)]
        found += [f"{path} (a socket)" for path in _inside(state.bells)]
        for kept in (state.logs, state.artifacts, state.results, state.work):
            found += [f"{path} (of no job)" for path in _inside(kept) if path.name not in jobs]
        return tuple(found)

    async def _open(self) -> SqliteStore:
        store = SqliteStore(self._state_dir, self._clock, random.Random())
        await store.open()
        return store

    async def _stored(self, store: Store, row: JobRow) -> StoredJob:
        events = await _events(store, row.id)
        return StoredJob(
            row=row,
            events=tuple(events),
            attempts=tuple(await store.attempts(row.id)),
            result=self._value(await store.result(row.id)),
            artifacts=self._artifacts(row.id, events),
        )

    def _value(self, result: StoredResult | None) -> Any:
        if result is None:
            return None
        if result.file is not None:
            return _shortened(json.loads((self._state_dir.root / result.file).read_bytes()))
        return None if result.json is None else _shortened(json.loads(result.json))

    def _artifacts(self, job_id: str, events: list[Event]) -> dict[tuple[int, str], str]:
        found = {}
        for event in events:
            if event.kind == EventKind.ARTIFACT:
                name = json.loads(event.data_json)["name"]
                path = self._state_dir.job_artifacts(job_id) / str(event.attempt) / name
                content = path.read_text("utf-8") if path.exists() else ""
                found[event.attempt, name] = digest(content)
        return found


async def _rows(store: Store, states: tuple[JobState, ...]) -> AsyncIterator[JobRow]:
    before = None
    while True:
        page = await store.list_jobs(JobQuery(states=states, before=before, limit=_PAGE))
        for row in page.jobs:
            yield row
        if page.cursor is None:
            return
        before = page.cursor


async def _events(store: Store, job_id: str) -> list[Event]:
    events: list[Event] = []
    while True:
        more = await store.events(job_id, events[-1].number if events else 0, _EVENTS)
        events += more
        if len(more) < _EVENTS:
            return events


def _shortened(value: Any) -> Any:
    return digest(value) if isinstance(value, str) else value


def _inside(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.exists() else []

"""The jobs that changed, as they change: one reader of the store for all who follow.

Doorbells say which jobs to look at; the rows read go into a bounded ring of changes that every
follower reads at its own pace. A follower that fell behind the ring, or comes from before a
restart, is told to look at everything anew (`reset`): it misses nothing and costs no memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from headway.core.errors import StoreUnavailable
from headway.dispatch.doorbell import Doorbell, Gatherer, job_topic
from headway.store.jobs import JobQuery, JobRow
from headway.store.store import Store

_LOG = logging.getLogger("headway.api.feed")

RING = 2_000
"""Changes kept for followers that are a little behind."""
_MAX_RUNG = 500
_GATHER_S = 0.1
"""Progress rings ten times a second a job; one look answers all rings of this time."""
_BACKUP_ROWS = 100
_POSITION = re.compile(r"([0-9a-f]+):([0-9]{1,18})")


@dataclass(frozen=True)
class Change:
    """A job as it was read after a ring; `number` ascends within one life of the server."""

    number: int
    row: JobRow


class JobFeed:
    """Follows all jobs while somebody listens.

    Args:
        store: Has the truth.
        doorbell: Says which jobs changed.
        backup_poll_s: How late a change whose ring was lost is noticed, among the newest jobs.
    """

    def __init__(self, store: Store, doorbell: Doorbell, backup_poll_s: float) -> None:
        self._store = store
        self._doorbell = doorbell
        self._backup_poll_s = backup_poll_s
        self._life = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self._ring: deque[Change] = deque(maxlen=RING)
        self._last = 0
        self._lost_until = 0
        self._seen: dict[str, JobRow] | None = None  # None: nothing was looked at yet
        self._news = asyncio.Event()
        self._followers = 0
        self._gatherer: Gatherer | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def position(self) -> str:
        """Where a follower that has just looked at everything goes on."""
        return f"{self._life}:{self._last}"

    @property
    def next_change(self) -> asyncio.Event:
        """Set when there is more. Take it before `since`, or a change in between is missed."""
        return self._news

    @property
    def stopping(self) -> bool:
        """True once the server stops."""
        return self._stopping

    def stop(self) -> None:
        """Let every follower come to its end."""
        self._stopping = True
        self._wake()

    def submitted(self, job_ids: Iterable[str]) -> None:
        """These jobs are new; nothing has rung for them yet."""
        if self._gatherer is not None:
            for job_id in job_ids:
                self._gatherer.rung_by(job_topic(job_id))

    def since(self, position: str) -> list[Change] | None:
        """The changes after `position`; None when they are not all known any more."""
        # A client may forge it: what is a digit to Unicode is no number to `int`.
        found = _POSITION.fullmatch(position)
        if found is None or found[1] != self._life or int(found[2]) < self._lost_until:
            return None
        return [change for change in self._ring if change.number > int(found[2])]

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[None]:
        """Keep the feed running while the block runs."""
        self._followers += 1
        if self._gatherer is None:
            # What happened while nobody followed was not gathered.
            self._forget()
            self._gatherer = self._doorbell.gather(job_topic(""), _MAX_RUNG)
            self._task = asyncio.create_task(self._run(self._gatherer))
        try:
            # What later looks are held against, in place before the follower reads its list.
            if self._seen is None:
                with contextlib.suppress(StoreUnavailable):
                    await self._look_at_newest()
            yield
        finally:
            self._followers -= 1
            if self._followers == 0:
                self._rest()

    def _rest(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._gatherer is not None:
            self._gatherer.close()
        self._task = self._gatherer = None

    async def _run(self, gatherer: Gatherer) -> None:
        while True:
            rung = await gatherer.wait(self._backup_poll_s)
            try:
                if rung:
                    await asyncio.sleep(_GATHER_S)
                    await self._look_at(gatherer.take())
                else:
                    await self._look_at_newest()
            except StoreUnavailable as error:
                _LOG.warning("the job feed waits for the store: %s", error)
                self._forget()

    async def _look_at(self, job_ids: set[str] | None) -> None:
        if job_ids is None:
            self._forget()
        else:
            for job_id in sorted(job_ids):
                found = await self._store.find(job_id)
                if isinstance(found, JobRow):
                    self._add(found)
        self._wake()

    async def _look_at_newest(self) -> None:
        page = await self._store.list_jobs(JobQuery(limit=_BACKUP_ROWS))
        before, self._seen = self._seen, {row.id: row for row in page.jobs}
        if before is None:
            return
        changed = [row for row in reversed(page.jobs) if before.get(row.id) != row]
        for row in changed:
            self._add(row)
        if changed:
            self._wake()

    def _add(self, row: JobRow) -> None:
        if len(self._ring) == RING:
            self._lost_until = self._ring[0].number
        self._last = next(self._numbers)
        self._ring.append(Change(self._last, row))
        if self._seen is not None and (row.id in self._seen or len(self._seen) < _BACKUP_ROWS):
            self._seen[row.id] = row

    def _forget(self) -> None:
        """Every follower looks at everything."""
        self._ring.clear()
        self._seen = None
        self._last = self._lost_until = next(self._numbers)

    def _wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

"""The store in one SQLite file: for one host, any number of its processes."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from headway.core.clock import Clock, s_from_ns
from headway.core.errors import StoreUnavailable
from headway.core.failure import ErrorInfo
from headway.core.ids import JobIds
from headway.core.statedir import StateDir
from headway.core.states import Outcome
from headway.store.attempts import AttemptEnd, Claim, ClaimedJob, Rescued
from headway.store.counts import Counts
from headway.store.jobs import (
    Ambiguous,
    AttemptRow,
    CancelResult,
    Event,
    JobPage,
    JobQuery,
    JobRow,
    NotFound,
    Payload,
    Progress,
    RetentionRule,
    StoredResult,
)
from headway.store.limits import QueueFull, QueueLimits
from headway.store.sqlite import (
    claiming,
    ending,
    explaining,
    housekeeping,
    limits,
    listing,
    locks,
    reading,
    rights,
    submission,
    waits,
)
from headway.store.sqlite.accounts import SqliteAccounts
from headway.store.sqlite.connections import connect_reader, connect_writer
from headway.store.sqlite.limit_store import SqliteLimits
from headway.store.sqlite.queries import load_queries
from headway.store.sqlite.queue_room import QueueRoom
from headway.store.sqlite.schema import ensure_schema
from headway.store.sqlite.transaction import LimitBooks, Transaction
from headway.store.sqlite.workers import ConnectionThread, WriterThread
from headway.store.submissions import IdempotencyConflict, NewJob, Submitted
from headway.store.waits import Waiting, Why

P = ParamSpec("P")
T = TypeVar("T")

CONNECTIONS = 3
"""What one store opens, whatever is asked of it: a writer, a reader, a scanner (J17)."""


class SqliteStore:
    """Implements `headway.store.store.Store`.

    Three threads own a connection each: the writer, one for quick reads, and one for reads that
    may take long (counts, retention), so that a scrape never delays a client.

    Args:
        state_dir: Where the database is; created when it does not exist.
        clock: Source of every time that is stored.
        rng: Source of the jitter of retries after a lost worker.
        observe: Told the kind (`read`, `scan`, `write`) and the seconds of each call.
        queue_limits: How much may wait in the whole store. They hold for what is submitted to this
            object, so for one process: the one that takes jobs in.

    Attributes:
        accounts: Users, workspaces, tokens and the audit log, in the same file.
        limits: Limits, weights and locks.
    """

    def __init__(
        self,
        state_dir: StateDir,
        clock: Clock,
        rng: random.Random,
        observe: Callable[[str, float], None] | None = None,
        queue_limits: QueueLimits = QueueLimits(),  # noqa: B008 -- it is frozen
    ) -> None:
        self._state_dir = state_dir
        self._clock = clock
        self._rng = rng
        self._observe = observe
        self._ids = JobIds()
        self._queries = load_queries()
        self._limit_books = LimitBooks()
        self._room = QueueRoom(queue_limits)
        path = state_dir.database
        self._writer = WriterThread(partial(connect_writer, path), state_dir.writer_lock)
        self._reader = ConnectionThread("headway-store-reader", partial(connect_reader, path))
        self._scanner = ConnectionThread("headway-store-scanner", partial(connect_reader, path))
        self.accounts = SqliteAccounts(self._write, self._read, self._scan)
        self.limits = SqliteLimits(self._write, self._read, self._scan)

    async def open(self) -> None:
        self._state_dir.create()
        await asyncio.to_thread(self._start)

    async def close(self) -> None:
        # The writer last: what it still has to write may be what a reader was asked for.
        for thread in (self._scanner, self._reader, self._writer):
            await thread.close()

    async def submit(
        self, jobs: Sequence[NewJob]
    ) -> list[Submitted] | IdempotencyConflict | QueueFull:
        try:
            return await self._write(submission.submit, self._ids, self._room, jobs)
        except StoreUnavailable:
            self._room.forget()
            raise
        except submission.Conflict as conflict:
            return conflict.conflict
        except limits.QueueFullError as full:
            return full.refusal

    async def find(
        self, reference: str, workspace: str | None = None
    ) -> JobRow | NotFound | Ambiguous:
        return await self._read(listing.find, reference, workspace)

    async def list_jobs(self, query: JobQuery) -> JobPage:
        return await self._read(listing.list_jobs, query)

    async def payload(self, job_id: str) -> Payload | None:
        return await self._read(reading.payload, job_id)

    async def result(self, job_id: str) -> StoredResult | None:
        return await self._read(reading.result, job_id)

    async def events(self, job_id: str, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self._read(reading.events, job_id, after, limit)

    async def attempts(self, job_id: str) -> list[AttemptRow]:
        return await self._read(reading.attempts, job_id)

    async def why(self, job_id: str) -> Why | None:
        return await self._read(explaining.why, job_id)

    async def request_cancel(self, job_id: str, by: str) -> CancelResult:
        return await self._write(ending.request_cancel, job_id, by)

    async def counts(self) -> Counts:
        return await self._scan(reading.counts)

    async def claim(self, owner: str, lanes: Mapping[str, int], lease_s: float) -> list[ClaimedJob]:
        return await self._write(rights.claim, owner, lanes, lease_s)

    async def renew(self, claims: Sequence[Claim], lease_s: float) -> list[Claim]:
        return await self._write(claiming.renew, claims, lease_s)

    async def running(self, owner: str) -> list[Claim]:
        return await self._read(reading.running, owner)

    async def cancel_requested(self, owner: str) -> list[Claim]:
        return await self._read(reading.cancel_requested, owner)

    async def progress(self, claim: Claim, progress: Progress) -> bool:
        return await self._write(claiming.set_progress, claim, progress)

    async def add_event(self, claim: Claim, kind: str, data_json: str) -> bool:
        return await self._write(claiming.add_event, claim, kind, data_json)

    async def end_attempt(self, claim: Claim, end: AttemptEnd) -> JobRow | None:
        return await self._write(ending.end_attempt, claim, end)

    async def rescue(self, dead_owners: Sequence[str]) -> list[Rescued]:
        return await self._write(ending.rescue, dead_owners, self._rng)

    async def owners(self) -> list[str]:
        return await self._read(reading.owners)

    async def any_lease_over(self) -> bool:
        return await self._read(reading.any_lease_over)

    async def next_run_at(self) -> datetime | None:
        return await self._read(reading.next_run_at)

    async def end_future_backoffs(self) -> int:
        return await self._write(claiming.end_future_backoffs)

    async def waiting(self) -> list[Waiting]:
        return await self._read(waits.waiting)

    async def describe_wait(self, job_id: str, detail: str) -> bool:
        return await self._write(waits.describe_wait, job_id, detail)

    async def preconditions_met(self, job_id: str) -> bool:
        return await self._write(waits.preconditions_met, job_id)

    async def precondition_failed(self, job_id: str, outcome: Outcome, error: ErrorInfo) -> bool:
        return await self._write(waits.precondition_failed, job_id, outcome, error)

    async def set_concurrency_limit(self, key: str, limit: int) -> None:
        await self._write(locks.set_limit, key, limit)

    async def take_lease(
        self, name: str, owner: str, lease_s: float, dead_owners: Sequence[str] = ()
    ) -> str:
        return await self._write(housekeeping.take_lease, name, owner, lease_s, dead_owners)

    async def record_period(self, name: str, due: datetime) -> None:
        await self._write(housekeeping.record_period, name, due)

    async def last_period(self, name: str) -> datetime | None:
        return await self._read(housekeeping.last_period, name)

    async def expired_jobs(self, rule: RetentionRule, limit: int) -> list[str]:
        return await self._scan(housekeeping.expired_jobs, rule, limit)

    async def delete_jobs(self, job_ids: Sequence[str]) -> int:
        return await self._write(housekeeping.delete_jobs, job_ids)

    def _start(self) -> None:
        ensure_schema(self._state_dir.database, self._state_dir.writer_lock)
        for thread in (self._writer, self._reader, self._scanner):
            thread.start()

    async def _write(
        self,
        operation: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        work = self._in_transaction(operation, *args, **kwargs)
        return await self._timed("write", self._writer.run(work))

    async def _read(
        self,
        operation: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        work = self._in_transaction(operation, *args, **kwargs)
        return await self._timed("read", self._reader.run(work))

    async def _scan(
        self,
        operation: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        work = self._in_transaction(operation, *args, **kwargs)
        return await self._timed("scan", self._scanner.run(work))

    # For what lies beside the jobs in the same database: the same threads, the same transactions.
    read = _read
    write = _write

    async def _timed(self, kind: str, call: Coroutine[Any, Any, T]) -> T:
        if self._observe is None:
            return await call
        began_ns = self._clock.monotonic_ns()
        try:
            return await call
        finally:
            self._observe(kind, s_from_ns(self._clock.monotonic_ns() - began_ns))

    def _in_transaction(
        self,
        operation: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Callable[[sqlite3.Connection], T]:
        def run(connection: sqlite3.Connection) -> T:
            transaction = Transaction(connection, self._queries, self._clock, self._limit_books)
            return operation(transaction, *args, **kwargs)

        return run

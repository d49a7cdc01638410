"""The threads that own SQLite connections: one that writes, in group commits, and some that read.

An asyncio caller hands over a function and awaits its result. Many submissions that arrive while
one commit is on its way to the disk share the next commit, and so the next fsync.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from headway.core.errors import HeadwayError, InternalError, StoreUnavailable

T = TypeVar("T")

MAX_WAITING = 20_000
"""Work that may wait for a thread; more is refused, so that overload does not become memory."""
MAX_BATCH = 512
"""Operations in one commit: enough to make the fsync cheap, few enough to keep the lock short."""
TIMEOUT_S = 15.0


class _Work(Generic[T]):
    """One operation on its way to a thread and back."""

    __slots__ = ("error", "function", "future", "loop", "result")

    def __init__(
        self,
        function: Callable[[sqlite3.Connection], T],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.function = function
        self.loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self.result: T | None = None
        self.error: BaseException | None = None

    @property
    def abandoned(self) -> bool:
        """Whether the caller has gone: its time ran out, or it was cancelled."""
        return self.future.done()

    def give_up(self) -> None:
        """The caller's time has run out."""
        if not self.future.done():
            self.future.set_exception(
                StoreUnavailable(
                    f"the store did not answer within {TIMEOUT_S:.0f} s; is another process"
                    " holding the database?"
                )
            )

    def settle(self) -> None:
        """Hand the outcome to the caller; runs on the caller's loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)  # type: ignore[arg-type] # None when T is None


class ConnectionThread:
    """A thread that owns a connection and runs operations on it in order.

    Args:
        name: Of the thread, for stack dumps.
        connect: Opens the connection.
    """

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._waiting: deque[_Work[Any]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._connection: sqlite3.Connection | None = None

    def start(self) -> None:
        """Connect, then start the thread; a connection error is raised here."""
        self._connection = self._connect()
        self._thread.start()

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run `function` on the thread's connection.

        Raises:
            StoreUnavailable: too much waits already, or no answer came within TIMEOUT_S. In the
                second case the operation was not begun, or its outcome is unknown.
        """
        work = _Work(function, asyncio.get_running_loop())
        with self._changed:
            if self._closing:
                raise StoreUnavailable("the store is closed")
            if len(self._waiting) >= MAX_WAITING:
                raise StoreUnavailable("the store has more work than it can do; try again later")
            self._waiting.append(work)
            self._changed.notify()
        # A timer of its own: `asyncio.timeout` took a twentieth of the worker's time.
        timer = work.loop.call_later(TIMEOUT_S, work.give_up)
        try:
            return await work.future
        finally:
            timer.cancel()

    async def close(self) -> None:
        """Run what was accepted, then disconnect."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join, TIMEOUT_S)

    def _main(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            while batch := self._take():
                self._execute(connection, batch)
                _settle(batch)
        finally:
            connection.close()

    def _take(self) -> list[_Work[Any]]:
        """The next operations; none when the thread is to end."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            count = min(len(self._waiting), MAX_BATCH)
            return [self._waiting.popleft() for _ in range(count)]

    def _execute(self, connection: sqlite3.Connection, batch: list[_Work[Any]]) -> None:
        for work in batch:
            if not work.abandoned:
                _run_one(connection, work)


class WriterThread(ConnectionThread):
    """The one thread of this process that writes, a batch of operations in each commit.

    Writers of several processes take turns by a blocking file lock: the kernel queues them fairly
    and frees the lock of a process that was killed. SQLite's own busy handler sleeps and starves
    (measured: of four writers with synchronous=FULL, one got a row in three seconds).

    Args:
        lock: The file that writers lock.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], lock: Path) -> None:
        super().__init__("headway-store-writer", connect)
        self._lock = lock
        self._lock_file: int | None = None

    def _main(self) -> None:
        try:
            super()._main()
        finally:
            if self._lock_file is not None:
                os.close(self._lock_file)

    def _execute(self, connection: sqlite3.Connection, batch: list[_Work[Any]]) -> None:
        try:
            if self._lock_file is None:
                # Kept open: each system call more is one more wait for Python's lock.
                self._lock_file = _open_lock(self._lock)
            with _held(self._lock_file):
                self._commit(connection, batch)
        except (sqlite3.Error, OSError) as error:
            # Nothing of the batch is on the disk: no caller may believe that it is.
            for work in batch:
                work.error = _mapped(error)

    def _commit(self, connection: sqlite3.Connection, batch: list[_Work[Any]]) -> None:
        """Run the operations, together if none fails, and commit.

        That spares two statements for each, and after each statement the thread has to queue for
        Python's lock. If one fails all are undone, and run once more, each so that it can be undone
        alone.
        """
        wanted = [work for work in batch if not work.abandoned]
        try:
            connection.execute("BEGIN IMMEDIATE")
            if not _run_together(connection, wanted):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if len(wanted) == 1:
                    return
                connection.execute("BEGIN IMMEDIATE")
                for work in wanted:
                    self._run_apart(connection, work)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _run_apart(self, connection: sqlite3.Connection, work: _Work[Any]) -> None:
        """Run one operation so that its failure undoes it alone."""
        connection.execute("SAVEPOINT work")
        _run_one(connection, work)
        if work.error is not None:
            if not connection.in_transaction:
                # A full disk makes SQLite undo the whole transaction by itself.
                raise sqlite3.OperationalError(str(work.error))
            connection.execute("ROLLBACK TO work")
        connection.execute("RELEASE work")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the writers' lock; waits for its turn."""
    descriptor = _open_lock(path)
    try:
        with _held(descriptor):
            yield
    finally:
        os.close(descriptor)


def _open_lock(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _held(descriptor: int) -> Iterator[None]:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        # Unlocked by name, not only by closing: a child that was forked in this moment holds a copy
        # of the descriptor until it executes its program, and the lock with it.
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _run_together(connection: sqlite3.Connection, works: list[_Work[Any]]) -> bool:
    """Run operations one after another; False when one failed, and the rest was not run."""
    for work in works:
        _run_one(connection, work)
        if work.error is not None:
            return False
    return True


def _run_one(connection: sqlite3.Connection, work: _Work[Any]) -> None:
    work.result = work.error = None
    try:
        work.result = work.function(connection)
    except sqlite3.Error as error:
        work.error = _mapped(error)
    except BaseException as error:  # noqa: BLE001 - belongs to the caller, not to this thread
        work.error = error


def _mapped(error: Exception) -> HeadwayError:
    """A foreign error as one of ours."""
    if isinstance(error, sqlite3.OperationalError | OSError):
        mapped: HeadwayError = StoreUnavailable(f"the store cannot do this now: {error}")
    else:
        mapped = InternalError(f"the store was asked for something impossible: {error}")
    mapped.__cause__ = error
    return mapped


def _settle(batch: list[_Work[Any]]) -> None:
    """Wake the callers, once for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Work[Any]]] = {}
    for work in batch:
        by_loop.setdefault(work.loop, []).append(work)
    for loop, works in by_loop.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle_all, works)


def _settle_all(works: list[_Work[Any]]) -> None:
    for work in works:
        work.settle()

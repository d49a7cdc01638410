"""Jobs that somebody watches right now: one look at the store for all who wait for the same job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from headway.core.clock import Clock, ns_from_s, s_from_ns
from headway.core.errors import StoreUnavailable
from headway.dispatch.doorbell import Doorbell, job_topic, log_topic
from headway.store.jobs import JobRow
from headway.store.store import Store


class LiveJob:
    """What is known of one watched job, and when to look again.

    Attributes:
        row: The job as last read; None before the first look.
        gone: The job was deleted.
    """

    def __init__(self, job_id: str, store: Store, doorbell: Doorbell, backup_poll_s: float) -> None:
        self.job_id = job_id
        self.row: JobRow | None = None
        self.gone = False
        self.watchers = 0
        self._store = store
        self._doorbell = doorbell
        self._backup_poll_s = backup_poll_s
        self._changed = asyncio.Event()
        self._failure: Exception | None = None
        self._log_task: asyncio.Task[None] | None = None
        self._log_wanted = False
        self._state_task = asyncio.create_task(self._watch_state())

    @property
    def next_change(self) -> asyncio.Event:
        """Set at the next change. Take it before looking, or a change in between is missed.

        Raises:
            Exception: whatever ended the watch.
        """
        if self._failure is not None:
            raise self._failure
        return self._changed

    def want_log(self) -> None:
        """Also wake when the current attempt's log grows."""
        self._log_wanted = True
        self._listen_to_log()

    async def close(self) -> None:
        tasks = [task for task in (self._state_task, self._log_task) if task is not None]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def wake(self) -> None:
        """Let everybody look."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _watch_state(self) -> None:
        try:
            with self._doorbell.listen(job_topic(self.job_id)) as bell:
                while not self.gone:
                    # The bell hangs before the look: what changes after it rings.
                    await self._look()
                    await bell.wait(self._backup_poll_s)
        except Exception as error:  # noqa: BLE001 -- handed to the watchers, who raise it
            self._failure = error
            self.wake()

    async def _look(self) -> None:
        try:
            found = await self._store.find(self.job_id)
        except StoreUnavailable:
            return  # the next look comes soon; who waits has a deadline
        if not isinstance(found, JobRow):
            self.gone = True
            self.wake()
        elif found != self.row:
            new_attempt = self.row is None or self.row.attempt != found.attempt
            self.row = found
            if new_attempt and self._log_wanted:
                self._listen_to_log()
            self.wake()

    def _listen_to_log(self) -> None:
        if self.row is None:
            return
        if self._log_task is not None:
            self._log_task.cancel()
        topic = log_topic(self.job_id, self.row.attempt)
        self._log_task = asyncio.create_task(self._watch_log(topic))

    async def _watch_log(self, topic: str) -> None:
        with self._doorbell.listen(topic) as bell:
            # What was written before the bell hung has not rung.
            self.wake()
            while True:
                if await bell.wait(self._backup_poll_s):
                    self.wake()


class LiveJobs:
    """The watched jobs of this process, each there as long as somebody watches it.

    Args:
        store: Has the truth; a ring only says to look.
        doorbell: Wakes at a change.
        clock: Measures deadlines.
        backup_poll_s: How late a change whose ring was lost is noticed.
    """

    def __init__(
        self, store: Store, doorbell: Doorbell, clock: Clock, backup_poll_s: float
    ) -> None:
        self._store = store
        self._doorbell = doorbell
        self._clock = clock
        self._backup_poll_s = backup_poll_s
        self._jobs: dict[str, LiveJob] = {}
        self._stopping = False

    @property
    def watched(self) -> int:
        """How many jobs are watched now."""
        return len(self._jobs)

    @property
    def stopping(self) -> bool:
        """True once the server stops; every watch should then come to its end."""
        return self._stopping

    def stop(self) -> None:
        """End all waits: each answers with what is known, and its client asks another server."""
        self._stopping = True
        for live in self._jobs.values():
            live.wake()

    @asynccontextmanager
    async def watch(self, job_id: str) -> AsyncIterator[LiveJob]:
        """Watch a job, by its whole id."""
        live = self._jobs.get(job_id)
        if live is None:
            live = LiveJob(job_id, self._store, self._doorbell, self._backup_poll_s)
            self._jobs[job_id] = live
        live.watchers += 1
        try:
            yield live
        finally:
            live.watchers -= 1
            if live.watchers == 0:
                del self._jobs[job_id]
                await live.close()

    async def until_ended(self, job: JobRow, wait_s: float) -> JobRow:
        """The job once it has ended, or as it is after `wait_s` or when the server stops."""
        if job.state.is_terminal or wait_s <= 0:
            return job
        deadline_ns = self._clock.monotonic_ns() + ns_from_s(wait_s)
        async with self.watch(job.id) as live:
            while True:
                change = live.next_change
                job = live.row or job
                left_s = s_from_ns(deadline_ns - self._clock.monotonic_ns())
                if job.state.is_terminal or live.gone or left_s <= 0 or self._stopping:
                    return job
                await wait_for_event(change, left_s)


async def wait_for_event(event: asyncio.Event, timeout_s: float) -> bool:
    """Wait until `event` is set, at most `timeout_s`; whether it is."""
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True

"""Doorbells only say "look now". Losing every ring costs latency, never a job.

A topic is a word: `work` (something may be claimed), `cancel` (a running job is to stop),
`job:<id>` (its state or progress changed), `log:<id>:<attempt>` (its log grew), `access` (accounts
were changed).
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Protocol, Self

WORK = "work"
CANCEL = "cancel"
ACCESS = "access"


def job_topic(job_id: str) -> str:
    """Rung when a job's state or progress changed."""
    return f"job:{job_id}"


def log_topic(job_id: str, attempt: int) -> str:
    """Rung when an attempt's log grew."""
    return f"log:{job_id}:{attempt}"


class Bell:
    """Wakes one waiter. A ring that comes while nobody waits is kept for the next wait."""

    def __init__(self, board: Board, topics: tuple[str, ...]) -> None:
        self._board = board
        self._topics = topics
        self._rung = False
        self._waiter: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the waiter of this bell alone."""
        self._rung = True
        if self._waiter is not None:
            _wake(self._waiter)

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a ring; False when none came in time. Several rings wake once."""
        if not self._rung:
            # By hand: an event and `asyncio.timeout` took ten times as long as what woke here.
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(timeout_s, _wake, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        rung, self._rung = self._rung, False
        return rung

    def close(self) -> None:
        """Listen no more."""
        self._board.remove(self, self._topics)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Gatherer(Bell):
    """A bell for every topic that begins so; it remembers which were rung.

    At most `limit` topics: beyond it, `take` says None, and the listener looks at everything.
    """

    def __init__(self, board: Board, prefix: str, limit: int) -> None:
        super().__init__(board, ())
        self.prefix = prefix
        self._gathering = board
        self._limit = limit
        self._topics_rung: set[str] = set()

    def rung_by(self, topic: str) -> None:
        """Remember the topic and wake the waiter."""
        if len(self._topics_rung) <= self._limit:
            self._topics_rung.add(topic.removeprefix(self.prefix))
        self.ring()

    def take(self) -> set[str] | None:
        """What follows the prefix in the topics rung since the last call; None: too many."""
        rung, self._topics_rung = self._topics_rung, set()
        return rung if len(rung) <= self._limit else None

    def close(self) -> None:
        self._gathering.drop(self)


class Board:
    """The bells of one process, by topic."""

    def __init__(self) -> None:
        self._bells: dict[str, set[Bell]] = {}
        self._gatherers: set[Gatherer] = set()

    def gather(self, prefix: str, limit: int) -> Gatherer:
        gatherer = Gatherer(self, prefix, limit)
        self._gatherers.add(gatherer)
        return gatherer

    def drop(self, gatherer: Gatherer) -> None:
        self._gatherers.discard(gatherer)

    def listen(self, *topics: str) -> Bell:
        bell = Bell(self, topics)
        for topic in topics:
            self._bells.setdefault(topic, set()).add(bell)
        return bell

    def remove(self, bell: Bell, topics: tuple[str, ...]) -> None:
        for topic in topics:
            bells = self._bells.get(topic)
            if bells is not None:
                bells.discard(bell)
                if not bells:
                    del self._bells[topic]

    def ring(self, topic: str) -> None:
        for bell in self._bells.get(topic, ()):
            bell.ring()
        for gatherer in self._gatherers:
            if topic.startswith(gatherer.prefix):
                gatherer.rung_by(topic)


class Doorbell(Protocol):
    """Rings between processes. Every method returns at once and none raises for a lost ring."""

    async def open(self) -> None:
        """Begin to hear other processes."""
        ...

    async def close(self) -> None:
        """Hear them no more. Closing twice is fine."""
        ...

    def ring(self, *topics: str) -> None:
        """Ring in this process and in every other."""
        ...

    def ring_later(self, topic: str) -> None:
        """Ring within some milliseconds, together with what else is rung until then."""
        ...

    def listen(self, *topics: str) -> Bell:
        """A bell for these topics; close it when done. Call from the event loop's thread."""
        ...

    def gather(self, prefix: str, limit: int = 1000) -> Gatherer:
        """A bell for all topics that begin with `prefix`; close it when done."""
        ...

"""Terminal records for requests that no worker can account for.

Two kinds: requests lost with their worker, and arrivals that fell due before the end of sending
and had not been handed out yet. The parent writes them, so that every request has exactly one
record whatever happens.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, SimpleQueue

from headway.core.clock import monotonic_ns, s_from_ns
from headway.load.inputs import Inputs
from headway.load.ledger import Unfinished
from headway.records.record import Failure, RequestRecord, Status

_PATIENCE_S = 5.0
"""The stage's event loop stands for as long: half of what a worker may be silent."""


class OrphanRecords:
    """Makes the parent's records of one stage.

    Args:
        stage: The stage's number.
        start_ns: The stage's start, absolute.
        open_inputs: Opens the stage's inputs here as well, to learn how many turns a
            conversation has; called when there is an orphan, which is rare.
    """

    def __init__(self, stage: int, start_ns: int, open_inputs: Callable[[], Inputs]) -> None:
        self._stage = stage
        self._start_ns = start_ns
        self._open_inputs = open_inputs
        self._counting: _TurnCounting | None = None
        self.arrivals = 0
        """Arrivals for which a record was made here."""

    def lost(
        self, arrivals: Iterable[Unfinished], worker: int, cause: str
    ) -> Iterator[RequestRecord]:
        """Every turn, without a record so far, of what a dead worker had."""
        message = f"load worker {worker} died ({cause})"
        failure = Failure(category="worker_lost", message=message)
        return self._records(arrivals, worker, "errored", failure)

    def unsent(self, arrivals: Iterable[Unfinished], worker: int = 0) -> Iterator[RequestRecord]:
        """Every turn, without a record so far, of arrivals that will not be sent."""
        return self._records(arrivals, worker, "cancelled", None)

    def close(self) -> None:
        """Close the inputs, if they were needed; safe to call twice."""
        if self._counting is not None:
            self._counting.close()
            self._counting = None

    def _records(
        self,
        arrivals: Iterable[Unfinished],
        worker: int,
        status: Status,
        failure: Failure | None,
    ) -> Iterator[RequestRecord]:
        for arrival in arrivals:
            turns = range(self._turns_of(arrival.index))
            missing = [turn for turn in turns if turn not in arrival.ended_turns]
            self.arrivals += bool(missing)
            for turn in missing:
                yield RequestRecord(
                    stage=self._stage,
                    index=arrival.index,
                    turn=turn,
                    worker=worker,
                    status=status,
                    due_ns=arrival.due_ns - self._start_ns,
                    failure=failure,
                )

    def _turns_of(self, index: int) -> int:
        if self._counting is None:
            self._counting = _TurnCounting(self._open_inputs())
        return self._counting.turns_of(index)


class _TurnCounting:
    """Asks inputs how many turns conversations have, and waits for them only so long.

    In a thread that the process can leave behind: somebody's generator may never return, and the
    stage, whose event loop waits here, has to end all the same.

    Args:
        inputs: Closed when the thread has ended.
        patience_s: For all answers together; conversations not told of by then have one turn.
    """

    def __init__(self, inputs: Inputs, patience_s: float = _PATIENCE_S) -> None:
        self._inputs = inputs
        self._left_s = patience_s
        self._asked: SimpleQueue[int | None] = SimpleQueue()
        self._told: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._answer, name="headway orphans", daemon=True).start()

    def turns_of(self, index: int) -> int:
        """The number of turns; 0 where there is no such conversation."""
        if self._left_s <= 0:
            return 1
        began_ns = monotonic_ns()
        self._asked.put(index)
        try:
            return self._told.get(timeout=self._left_s)
        except Empty:
            return 1
        finally:
            self._left_s -= s_from_ns(monotonic_ns() - began_ns)

    def close(self) -> None:
        """End the thread as soon as the inputs let it."""
        self._asked.put(None)

    def _answer(self) -> None:
        while (index := self._asked.get()) is not None:
            turns = 1
            with contextlib.suppress(Exception):  # Inputs that fail make one failed request.
                conversation = self._inputs.conversation(index)
                turns = 0 if conversation is None else len(conversation.turns)
            self._told.put(turns)
        with contextlib.suppress(Exception):
            self._inputs.close()

"""Terminal records for requests that no worker can account for.

Two kinds: requests lost with their worker, and arrivals that fell due before the end of sending
and had not been handed out yet. The parent writes them, so that every request has exactly one
record whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from headway.load.inputs import Inputs
from headway.load.ledger import Unfinished
from headway.records.record import Failure, RequestRecord, Status


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
        self._inputs: Inputs | None = None
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
        if self._inputs is not None:
            self._inputs.close()
            self._inputs = None

    def _records(
        self,
        arrivals: Iterable[Unfinished],
        worker: int,
        status: Status,
        failure: Failure | None,
    ) -> Iterator[RequestRecord]:
        for arrival in arrivals:
            missing = [t for t in self._turns(arrival.index) if t not in arrival.ended_turns]
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

    def _turns(self, index: int) -> range:
        if self._inputs is None:
            self._inputs = self._open_inputs()
        try:
            conversation = self._inputs.conversation(index)
        except Exception:  # noqa: BLE001  inputs that fail make one failed request an arrival
            return range(1)
        return range(0 if conversation is None else len(conversation.turns))

"""Posts the jobs, again and again until each was accepted, and cancels those that are to be."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from headway.chaos.history import Accepted
from headway.chaos.workload import LABEL, Assignment
from headway.client import Client, RetryPolicy, ServerBusy, ServerUnreachable, SubmitOptions
from headway.core.clock import Clock, ns_from_s
from headway.core.errors import HeadwayError
from headway.core.states import JobState

MOST_UNENDED = 30
"""Jobs that wait or run; with more, submitting waits. It keeps a slow machine from a backlog."""
GAP_S = 0.1
"""Between two submissions: the machine is to be busy with faults, not with small jobs."""
PATIENCE_S = 10.0
_LOOK_S = 0.3
_LIVE = (JobState.PENDING, JobState.RUNNING)


@dataclass(frozen=True, order=True)
class _Cancel:
    at_ns: int
    job_id: str


class Feeder:
    """A thread that submits and one that cancels.

    Args:
        server: Its URL; it may be away at any time.
        assignments: What to submit, without end.
        clock: Monotonic time and UTC.
        on_accepted: Told each assignment and its job's id, on the feeder's thread.
    """

    def __init__(
        self,
        server: str,
        assignments: Iterator[Assignment],
        clock: Clock,
        on_accepted: Callable[[Assignment, str], None],
    ) -> None:
        self._client = Client(server, retry=RetryPolicy(patience_s=PATIENCE_S))
        self._assignments = assignments
        self._clock = clock
        self._on_accepted = on_accepted
        self._enough = threading.Event()
        self._give_up = threading.Event()
        self._cancels: deque[_Cancel] = deque()
        self._threads = [
            threading.Thread(target=self._feed, name="chaos-feeder", daemon=True),
            threading.Thread(target=self._cancel_due, name="chaos-canceller", daemon=True),
        ]
        self.accepted: list[Accepted] = []
        self.complaints: list[str] = []

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def enough(self, patience_s: float) -> None:
        """Begin no more jobs; end when the last was accepted and the last cancel was heard.

        Args:
            patience_s: For that; whatever was not accepted by then counts as a complaint.
        """
        self._enough.set()
        deadline_ns = self._clock.monotonic_ns() + ns_from_s(patience_s)
        for thread in self._threads:
            left_ns = deadline_ns - self._clock.monotonic_ns()
            thread.join(max(0.0, left_ns / 1e9))
        self._give_up.set()
        self._client.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    # --- submitting -----------------------------------------------------------------------------

    def _feed(self) -> None:
        for assignment in self._assignments:
            if self._enough.is_set():
                return
            self._submit(assignment)
            self._enough.wait(GAP_S)
            self._wait_for_room()

    def _submit(self, assignment: Assignment) -> None:
        options = self._options(assignment)
        posts = 2 if assignment.post_twice else 1
        answers = [self._post(assignment, options) for _ in range(posts)]
        ids = [job_id for job_id in answers if job_id is not None]
        self.accepted.append(Accepted(assignment=assignment, job_ids=tuple(ids)))
        if not ids:
            return
        self._on_accepted(assignment, ids[0])
        if assignment.cancel_after_s is not None:
            at_ns = self._clock.monotonic_ns() + ns_from_s(assignment.cancel_after_s)
            self._cancels.append(_Cancel(at_ns, ids[0]))

    def _options(self, assignment: Assignment) -> SubmitOptions:
        # Made once for all posts of an assignment: another time would be another request.
        not_before = None
        if assignment.delay_s:
            not_before = self._clock.now() + timedelta(seconds=assignment.delay_s)
        return SubmitOptions(
            labels={LABEL: str(assignment.number)},
            concurrency_key=assignment.concurrency_key,
            not_before=not_before,
        )

    def _post(self, assignment: Assignment, options: SubmitOptions) -> str | None:
        return self._until_answered(
            lambda: (
                self._client.submit(
                    assignment.operation,
                    assignment.input,
                    options=options,
                    idempotency_key=assignment.idempotency_key,
                ).id
            )
        )

    def _until_answered(self, call: Callable[[], str]) -> str | None:
        while not self._give_up.is_set():
            try:
                return call()
            except (ServerUnreachable, ServerBusy):
                continue  # it is down or starting; the same request is sent again
            except HeadwayError as error:
                self.complaints.append(f"a request was refused: {type(error).__name__}: {error}")
                return None
            except RuntimeError:
                return None  # the client was closed under a call
        return None

    def _wait_for_room(self) -> None:
        while not self._enough.is_set():
            if self._unended() < MOST_UNENDED:
                return
            self._enough.wait(_LOOK_S)

    def _unended(self) -> int:
        try:
            page = self._client.list(state=_LIVE, limit=2 * MOST_UNENDED)
        except HeadwayError:
            return MOST_UNENDED
        return len(page.jobs)

    # --- cancelling -----------------------------------------------------------------------------

    def _cancel_due(self) -> None:
        while not self._give_up.is_set():
            due = [each for each in self._cancels if each.at_ns <= self._clock.monotonic_ns()]
            for each in due:
                self._until_answered(partial(self._cancel, each.job_id))
                self._cancels.remove(each)
            if not self._cancels and self._enough.is_set() and not self._threads[0].is_alive():
                return
            self._give_up.wait(0.05)

    def _cancel(self, job_id: str) -> str:
        return self._client.cancel(job_id).id

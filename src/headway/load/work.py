"""Which request a free slot of this worker sends next, and when the next one falls due.

Pure: no clock, no event loop, no I/O. The slots ask `take(now)`, the pacing asks `next_due_ns()`.
A request that is not due yet is only an entry here: it holds no slot (trap 28). One that is due
while every slot is busy waits here with its due time unchanged (trap 27).
"""

from __future__ import annotations

import heapq
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count

from headway.backends.backend import Call
from headway.load.conversation import ConversationRun, TurnRun
from headway.load.inputs.conversation import Conversation, Inputs, Turn


class WorkQueue:
    """The work of one stage on one worker.

    Args:
        content: The opened inputs.
        open_conversations: Most conversations begun here and not ended; None: no limit.
        not_before_ns: The stage's start; no closed-loop request is due earlier.
        end_ns: Nothing is taken from then on; None: until `cut`.
    """

    def __init__(
        self,
        content: Inputs,
        open_conversations: int | None,
        not_before_ns: int,
        end_ns: int | None = None,
    ) -> None:
        self._content = content
        self._open_limit = open_conversations
        self._not_before_ns = not_before_ns
        self._arrivals: deque[tuple[int, int]] = deque()
        self._prepared: deque[TurnRun] = deque()
        self._grants: deque[int] = deque()
        self._low_grants = 0
        self.on_low: Callable[[], None] = lambda: None
        """Called when half of the latest grants are begun: time to ask for more."""
        self._ready: list[tuple[int, int, TurnRun]] = []
        self._ready_order = count()
        self.on_branch: Callable[[], None] = lambda: None
        """Called when several turns have become ready at once: more than one slot has work."""
        self._open = 0
        self._end_ns = end_ns
        self.is_cut = False
        """Whether `cut` was called: nothing is sent any more."""
        self._exhausted_at: int | None = None
        self.dropped: list[int] = []
        """Arrivals that turned out not to be offered; whoever reports them clears the list."""

    # --- what comes in -------------------------------------------------------------------------

    def add_arrivals(self, first: int, step: int, due_ns: bytes) -> None:
        """Open loop: arrivals in the order of their due times, later than all before."""
        due = array("q")
        due.frombytes(due_ns)
        stop = first + step * len(due)
        self._arrivals.extend(zip(range(first, stop, step), due, strict=True))

    def add_grants(self, first: int, number: int) -> None:
        """Closed loop: arrivals that may begin as soon as a slot is free."""
        self._grants.extend(range(first, first + number))
        # Half is enough to bridge the way to the parent and back, and asks once a grant.
        self._low_grants = len(self._grants) // 2

    def add_ready(self, turns: Sequence[TurnRun]) -> None:
        """Turns of an open conversation that wait for no other one, each due at its own time."""
        for turn in turns:
            heapq.heappush(self._ready, (turn.due_ns, next(self._ready_order), turn))
        if len(turns) > 1:
            self.on_branch()

    def conversation_ended(self) -> None:
        """A conversation that `take` or `cut` began has no turn left."""
        self._open -= 1

    # --- what goes out -------------------------------------------------------------------------

    def take(self, now_ns: int) -> TurnRun | None:
        """The request to send now, if any.

        Of turns that are ready and conversations that have arrived, whatever fell due first;
        ready turns go before conversations that may begin at any time (trap 31).
        """
        if self.is_cut or (self._end_ns is not None and now_ns >= self._end_ns):
            return None
        if self._ready and self._ready[0][0] <= now_ns and not self._arrived_first():
            return heapq.heappop(self._ready)[2]
        if self._open_limit is not None and self._open >= self._open_limit:
            return None
        turn = self._take_granted(now_ns) if self._grants else self._take_arrival(now_ns)
        if turn is None:
            # What had arrived first turned out to be nothing: the inputs have come to an end.
            is_due = bool(self._ready) and self._ready[0][0] <= now_ns
            return heapq.heappop(self._ready)[2] if is_due else None
        self._open += 1
        conversation = turn.conversation
        if conversation.left > 1 and (others := conversation.begin_others(turn.due_ns)):
            self.add_ready(others)
            self.on_branch()
        return turn

    def next_due_ns(self) -> int | None:
        """When `take` may next have something that it has not now, by time alone."""
        due = self._ready[0][0] if self._ready else None
        if self.is_full:
            return due
        arrival = self._next_arrival_due_ns()
        if due is None or arrival is None:
            return arrival if due is None else due
        return min(due, arrival)

    @property
    def is_full(self) -> bool:
        """Whether no conversation may begin until another one ends."""
        return self._open_limit is not None and self._open >= self._open_limit

    @property
    def can_prepare(self) -> bool:
        """Whether there are arrivals whose content `prepare_one` could make."""
        return bool(self._arrivals)

    def prepare_one(self, limit: int) -> bool:
        """Make the content of one more arrival ahead of its due time.

        Otherwise making it would delay its own sending: 20 to 100 µs for a usual prompt.

        Returns:
            False when `limit` are ready already, or there is nothing to prepare.
        """
        if len(self._prepared) >= limit or not self._arrivals:
            return False
        turn = self._next_turn(*self._arrivals.popleft())
        if turn is not None:
            self._prepared.append(turn)
        return True

    # --- stopping ------------------------------------------------------------------------------

    def cut(self, cut_ns: int) -> list[TurnRun]:
        """End sending at `cut_ns` (absolute).

        Returns:
            Every turn that was begun or fell due before the cut and will not be sent any more.
            Arrivals due later, and grants not begun, go to `dropped`.
        """
        self.is_cut = True
        unsent = [turn for _, _, turn in sorted(self._ready)]
        self._ready.clear()
        for turn in self._prepared:
            if turn.due_ns >= cut_ns:
                self.dropped.append(turn.conversation.index)
            else:
                unsent += self._begun(turn)
        self._prepared.clear()
        for index, due_ns in self._arrivals:
            if due_ns >= cut_ns:
                self.dropped.append(index)
            elif (first := self._next_turn(index, due_ns)) is not None:
                unsent += self._begun(first)
        self._arrivals.clear()
        self.dropped.extend(self._grants)
        self._grants.clear()
        return unsent

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits here, due or not."""
        return not (self._ready or self._prepared or self._arrivals or self._grants)

    @property
    def exhausted_at(self) -> int | None:
        """The first arrival found for which the inputs had nothing."""
        return self._exhausted_at

    # --- parts ---------------------------------------------------------------------------------

    def _begun(self, first: TurnRun) -> list[TurnRun]:
        self._open += 1
        return [first, *first.conversation.begin_others(first.due_ns)]

    def _arrived_first(self) -> bool:
        """Whether an arrival that may begin fell due before the turn that is ready first."""
        if self._grants or self.is_full:
            return False
        due_ns = self._next_arrival_due_ns()
        return due_ns is not None and due_ns < self._ready[0][0]

    def _take_arrival(self, now_ns: int) -> TurnRun | None:
        if self._prepared:
            return self._prepared.popleft() if self._prepared[0].due_ns <= now_ns else None
        while self._arrivals and self._arrivals[0][1] <= now_ns:
            turn = self._next_turn(*self._arrivals.popleft())
            if turn is not None:
                return turn
        return None

    def _take_granted(self, now_ns: int) -> TurnRun | None:
        if now_ns < self._not_before_ns:
            return None
        while self._grants:
            index = self._grants.popleft()
            if len(self._grants) == self._low_grants:
                self.on_low()
            turn = self._next_turn(index, now_ns)
            if turn is not None:
                return turn
        return None

    def _next_turn(self, index: int, due_ns: int) -> TurnRun | None:
        if self._exhausted_at is not None and index >= self._exhausted_at:
            self.dropped.append(index)  # Inputs that take long to find their end are asked once.
            return None
        try:
            source = self._content.conversation(index)
            if source is not None:
                return ConversationRun(index, source).begin(due_ns)
        except Exception as error:  # noqa: BLE001  becomes the request's record
            return _without_content(index, due_ns, error)
        self.dropped.append(index)
        if self._exhausted_at is None or index < self._exhausted_at:
            self._exhausted_at = index
        return None

    def _next_arrival_due_ns(self) -> int | None:
        if self._prepared:
            return self._prepared[0].due_ns
        if self._arrivals:
            return self._arrivals[0][1]
        return self._not_before_ns if self._grants else None


def _without_content(index: int, due_ns: int, error: Exception) -> TurnRun:
    turn = ConversationRun(index, Conversation(turns=(Turn(call=Call()),))).begin(due_ns)
    turn.input_error = error
    return turn

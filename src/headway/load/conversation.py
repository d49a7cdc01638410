"""A conversation as a worker runs it: which turns wait for which, and what each has heard.

A single request is a conversation of one turn, a plain dialogue is a graph in which each turn
waits for the one before. A conversation never leaves its worker: the real answers become its
history, and prompts and answers never cross a process border.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.backends.backend import Answer, Call, Message
from headway.core.clock import ns_from_s
from headway.load.inputs.conversation import Conversation, Links, Turn, lineage, links_of
from headway.load.inputs.placeholders import filled

_CLOSED = -1


class TurnRun:
    """One request: a turn of a conversation with the time it is due."""

    __slots__ = (
        "call",
        "conversation",
        "due_ns",
        "history",
        "input_error",
        "leads_on",
        "number",
    )

    def __init__(
        self,
        conversation: ConversationRun,
        number: int,
        due_ns: int,
        call: Call,
        history: tuple[Message, ...] = (),
        leads_on: bool = False,
    ) -> None:
        self.conversation = conversation
        self.number = number
        self.due_ns = due_ns
        self.call = call
        self.history = history
        """What was said before."""
        self.leads_on = leads_on
        """Whether other turns wait for this one."""
        self.input_error: Exception | None = None
        """Why there is no content: the inputs raised while making it."""


class ConversationRun:
    """One conversation in progress on this worker."""

    __slots__ = ("_call", "_graph", "index", "left")

    def __init__(self, index: int, source: Conversation) -> None:
        """Raises ValueError when a turn refers to one that does not come before it."""
        self.index = index
        turns = source.turns
        self.left = len(turns)
        """Turns without their terminal record; at 0 the conversation is over."""
        self._call = turns[0].call
        # Most conversations are single requests, and have no use for one.
        self._graph = _Graph(turns) if self.left > 1 else None

    def begin(self, due_ns: int) -> TurnRun:
        """The turn that is due at the conversation's arrival."""
        graph = self._graph
        return TurnRun(self, 0, due_ns, self._call) if graph is None else graph.begin(self, due_ns)

    def begin_others(self, due_ns: int) -> Sequence[TurnRun]:
        """The other turns that wait for none; to be asked for once, when the first is sent."""
        return () if self._graph is None else self._graph.begin_others(self, due_ns)

    def turns_after(self, turn: TurnRun, answer: Answer, ended_ns: int) -> list[TurnRun]:
        """Take the answer of a completed turn; give the turns that waited for nothing else."""
        return [] if self._graph is None else self._graph.turns_after(turn, answer, ended_ns)

    def turns_lost_with(self, turn: TurnRun, now_ns: int) -> list[TurnRun]:
        """All turns, not given before, that can no longer be sent: their turn did not complete."""
        return [] if self._graph is None else self._graph.turns_lost_with(turn, now_ns)


class _Graph:
    """How far the turns of a conversation of several have come.

    Does not know the conversation, which knows it: together they would be left to the collector.

    Raises:
        ValueError: a turn refers to one that does not come before it.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._links = [links_of(number, turn.links) for number, turn in enumerate(turns)]
        self._history = [links.sources for links in self._links]
        self._missing = [len(links.after) for links in self._links]
        """How many turns each still waits for; closed: it was lost with one of them."""
        self._due_ns = [0] * len(turns)
        self._said: list[tuple[Message, ...]] = [()] * len(turns)
        self._answers: list[Message | None] = [None] * len(turns)
        self._followers: list[list[tuple[int, int]]] = [[] for _ in turns]
        """The turns that wait for each, with the think time in between."""
        for number, (turn, links) in enumerate(zip(turns, self._links, strict=True)):
            if turn.links is not None:
                _check_links(number, links)
            for place, parent in enumerate(links.after):
                edge_s = links.think_times_s[place] if links.think_times_s else None
                think_s = turn.think_time_s if edge_s is None else edge_s
                self._followers[parent].append((number, ns_from_s(think_s) if think_s else 0))
        roots = [number for number, links in enumerate(self._links) if not links.after]
        self._roots = sorted(roots, key=lambda number: turns[number].think_time_s)

    def begin(self, conversation: ConversationRun, due_ns: int) -> TurnRun:
        return self._unheard(conversation, self._roots[0], due_ns)

    def begin_others(self, conversation: ConversationRun, due_ns: int) -> Sequence[TurnRun]:
        first, *others = self._roots
        turns = self._turns
        first_s = turns[first].think_time_s
        after_ns = [ns_from_s(turns[number].think_time_s - first_s) for number in others]
        return [
            self._unheard(conversation, number, due_ns + after)
            for number, after in zip(others, after_ns, strict=True)
        ]

    def turns_after(self, turn: TurnRun, answer: Answer, ended_ns: int) -> list[TurnRun]:
        said = turn.call.as_messages()
        if answer.message is not None:
            said += (answer.message,)
        self._said[turn.number] = said
        self._answers[turn.number] = answer.message
        ready = []
        for number, think_ns in self._followers[turn.number]:
            # A join is due when the last of its turns has ended and been thought about.
            due_ns = self._due_ns[number] = max(self._due_ns[number], ended_ns + think_ns)
            if self._missing[number] > 0:
                self._missing[number] -= 1
                if self._missing[number] == 0:
                    ready.append(self._ready(number, due_ns, turn))
        return ready

    def turns_lost_with(self, turn: TurnRun, now_ns: int) -> list[TurnRun]:
        lost = []
        parents = [turn.number]
        while parents:
            for number, _ in self._followers[parents.pop()]:
                if self._missing[number] != _CLOSED:
                    self._missing[number] = _CLOSED
                    lost.append(number)
                    parents.append(number)
        return [self._unheard(turn.conversation, number, now_ns) for number in sorted(lost)]

    def _ready(self, number: int, due_ns: int, last: TurnRun) -> TurnRun:
        """A turn of which the last parent has just completed."""
        call, heard = self._filled(number), self._heard(number, last)
        leads_on = bool(self._followers[number])
        return TurnRun(last.conversation, number, due_ns, call, heard, leads_on)

    def _heard(self, number: int, last: TurnRun) -> tuple[Message, ...]:
        if self._history[number] == (last.number,):
            # What `lineage` would put together, without going back: dialogues can be long.
            return last.history + self._said[last.number]
        heard: list[Message] = []
        for source in lineage(number, self._history):
            heard.extend(self._said[source])
        return tuple(heard)

    def _filled(self, number: int) -> Call:
        call, answers = self._turns[number].call, self._links[number].answers
        if not answers:
            return call
        given = ((name, self._answers[source]) for name, source in answers.items())
        return filled(call, {name: answer.as_text() if answer else "" for name, answer in given})

    def _unheard(self, conversation: ConversationRun, number: int, due_ns: int) -> TurnRun:
        leads_on = bool(self._followers[number])
        return TurnRun(conversation, number, due_ns, self._turns[number].call, (), leads_on)


def _check_links(number: int, links: Links) -> None:
    if not all(0 <= source < number for source in (*links.after, *links.sources)):
        raise ValueError(f"turn {number} refers to one that does not come before it")

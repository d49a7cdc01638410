"""A conversation as a worker runs it: its turns, its history, and how far it has come.

A single request is a conversation of one turn. A conversation never leaves its worker: the real
answers become its history, and prompts and answers never cross a process border.
"""

from __future__ import annotations

from headway.backends.backend import Answer, Message
from headway.core.clock import ns_from_s
from headway.load.inputs.conversation import Conversation


class ConversationRun:
    """One conversation in progress on this worker."""

    __slots__ = ("history", "index", "turns")

    def __init__(self, index: int, source: Conversation) -> None:
        self.index = index
        self.turns = source.turns
        self.history: tuple[Message, ...] = ()

    def turn_at(self, number: int, due_ns: int) -> TurnRun:
        """One of its turns, with its due time."""
        return TurnRun(self, number, due_ns)

    def turn_after(self, turn: TurnRun, answer: Answer, ended_ns: int) -> TurnRun:
        """Remember a successful turn that is not the last; give the one after it."""
        self.history += turn.call.as_messages()
        if answer.message is not None:
            self.history += (answer.message,)
        following = turn.number + 1
        think_ns = ns_from_s(self.turns[following].think_time_s)
        return TurnRun(self, following, ended_ns + think_ns)


class TurnRun:
    """One request: a turn of a conversation with the time it is due."""

    __slots__ = ("call", "conversation", "due_ns", "input_error", "is_last", "number")

    def __init__(self, conversation: ConversationRun, number: int, due_ns: int) -> None:
        self.conversation = conversation
        self.number = number
        self.due_ns = due_ns
        self.call = conversation.turns[number].call
        self.is_last = number + 1 == len(conversation.turns)
        self.input_error: Exception | None = None
        """Why there is no content: the inputs raised while making it."""

"""What the tests of the scheduler share: content by index, an outbox that keeps messages."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from headway.backends.backend import Call
from headway.load.inputs.conversation import Conversation, Turn
from headway.load.messages import Report, StageDone
from headway.records.record import RequestRecord


class ListedInputs:
    """Conversations of given lengths: `turns[i]` turns for arrival i; then the inputs end."""

    def __init__(self, turns: Sequence[int] | None = None, think_time_s: float = 0.0) -> None:
        self._turns = turns
        self._think_time_s = think_time_s

    def conversation(self, index: int) -> Conversation | None:
        number = 1
        if self._turns is not None:
            if index >= len(self._turns):
                return None
            number = self._turns[index]
        return Conversation(
            turns=tuple(
                Turn(call=Call(prompt=f"{index}/{turn}"), think_time_s=self._think_time_s)
                for turn in range(number)
            )
        )

    def close(self) -> None:
        pass


class KeptOutbox:
    """Keeps what a worker would send."""

    over_high_water = False

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.on_message: Callable[[Any], None] = lambda message: None

    def send(self, message: Any) -> None:
        self.messages.append(message)
        self.on_message(message)

    async def wait_drained(self) -> None:
        pass

    @property
    def reports(self) -> list[Report]:
        return [message for message in self.messages if isinstance(message, Report)]

    @property
    def records(self) -> list[RequestRecord]:
        decoder = msgspec.json.Decoder(RequestRecord)
        lines = b"".join(report.records for report in self.reports).splitlines()
        return [decoder.decode(line) for line in lines]

    @property
    def dropped(self) -> list[int]:
        return [index for report in self.reports for index in numbers(report.dropped)]

    @property
    def ended(self) -> list[int]:
        return [index for report in self.reports for index in numbers(report.ended)]

    @property
    def is_done(self) -> bool:
        return any(isinstance(message, StageDone) for message in self.messages)


def numbers(data: bytes) -> list[int]:
    values = array("q")
    values.frombytes(data)
    return list(values)


@pytest.fixture
def listed_inputs() -> type[ListedInputs]:
    return ListedInputs


@pytest.fixture
def kept_outbox() -> type[KeptOutbox]:
    return KeptOutbox

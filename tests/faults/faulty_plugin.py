"""A backend and inputs that fail where they are told to, for runs of the fault suite."""

from __future__ import annotations

import time
from typing import Any

from headway.backends.backend import Answer, Call, Message, Progress, TargetInfo
from headway.backends.spec import TargetSpec
from headway.core.clock import monotonic_ns
from headway.load.inputs.conversation import Conversation, Turn


class FaultyBackend:
    """Raises in the method that its option `where` names."""

    def __init__(self, options: dict[str, Any], target: TargetSpec) -> None:
        self._where = options.get("where")

    async def startup(self) -> None:
        self._raise_in("startup")

    async def validate(self) -> TargetInfo:
        self._raise_in("validate")
        return TargetInfo(url="faulty:")

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        progress.sent_ns = monotonic_ns()
        self._raise_in("resolve")
        progress.done_ns = monotonic_ns()
        return Answer(message=Message("assistant", "fine"))

    async def shutdown(self) -> None:
        self._raise_in("shutdown")

    def _raise_in(self, method: str) -> None:
        if self._where == method:
            raise RuntimeError(f"the backend breaks in {method}")


class SlowInputs:
    """Takes `slow_s` for each conversation, and `end_s` to find out that `count` were all."""

    def __init__(self, options: dict[str, Any], seed: int, stage: int) -> None:
        self._count = int(options.get("count", 1_000_000))
        self._slow_s = float(options.get("slow_s", 0.0))
        self._end_s = float(options.get("end_s", 0.0))

    def conversation(self, index: int) -> Conversation | None:
        is_over = index >= self._count
        time.sleep(self._end_s if is_over else self._slow_s)
        return None if is_over else Conversation(turns=(Turn(call=Call(prompt=str(index))),))

    def close(self) -> None:
        pass


class FaultyInputs:
    """Raises for one index, and for all after it when `for_good`."""

    def __init__(self, options: dict[str, Any], seed: int, stage: int) -> None:
        self._at = int(options["at"])
        self._for_good = bool(options.get("for_good"))

    def conversation(self, index: int) -> Conversation | None:
        if index == self._at or (self._for_good and index > self._at):
            raise RuntimeError(f"there is no conversation {index}")
        return Conversation(turns=(Turn(call=Call(prompt=str(index))),))

    def close(self) -> None:
        pass

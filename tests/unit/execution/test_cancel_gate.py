"""Trap 7: SIGTERM at every single instruction of the gate is neither lost nor out of place."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from headway.execution import cancel_gate
from headway.execution.cancel_gate import CancelGate
from headway.jobs import JobCancelled

GATE_FILE = cancel_gate.__file__


@pytest.fixture
def gate() -> Iterator[CancelGate]:
    before = signal.getsignal(signal.SIGTERM)
    gate = CancelGate()
    gate.idle = False
    gate.install()
    yield gate
    signal.signal(signal.SIGTERM, before)


class SignalAt:
    """Sends SIGTERM to this process before the n-th bytecode instruction of `CancelGate.call`."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen = 0
        self.sent = False

    def __enter__(self) -> SignalAt:
        self._before = sys.gettrace()
        sys.settrace(self._on_call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != GATE_FILE or frame.f_code.co_name != "call":
            return None
        frame.f_trace_opcodes = True
        return self._on_opcode

    def _on_opcode(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            if self.seen == self.number:
                self.sent = True
                signal.raise_signal(signal.SIGTERM)
            self.seen += 1
        return self._on_opcode


def outcomes(gate_factory: Callable[[], CancelGate], function: Callable[[], Any]) -> list[Any]:
    """What `call` gives for a signal at each instruction, until there are no more instructions."""
    found = []
    for number in range(1000):
        gate = gate_factory()
        with SignalAt(number) as shot:
            outcome = gate.call(function)
        if not shot.sent:
            return found
        assert gate.requested, "the signal was remembered"
        found.append(outcome)
    raise AssertionError("the trace did not end")


@pytest.fixture
def fresh(gate: CancelGate) -> Callable[[], CancelGate]:
    def make() -> CancelGate:
        again = CancelGate()
        again.idle = False
        again.install()
        return again

    return make


def test_trap_7_a_function_that_returns(fresh) -> None:
    found = outcomes(fresh, lambda: "value")
    assert len(found) > 20
    for value, error in found:
        cancelled = isinstance(error, JobCancelled)
        assert cancelled or (value, error) == ("value", None)
    assert isinstance(found[5][1], JobCancelled), "before the function: raised as it begins"
    assert found[-1] == ("value", None), "after it: noted, harming nothing"


def test_trap_7_a_function_that_raises(fresh) -> None:
    def fails() -> None:
        raise ValueError("mine")

    for value, error in outcomes(fresh, fails):
        assert value is None
        assert isinstance(error, JobCancelled | ValueError)


def test_a_signal_in_the_function_is_raised_there_once(gate) -> None:
    def works() -> str:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):
                pass
        except JobCancelled:
            # A second signal must not break into the clean-up.
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):
                pass
            return "cleaned up"
        return "not interrupted"

    assert gate.call(works) == ("cleaned up", None)
    assert gate.requested


def test_a_signal_before_the_function_is_not_lost(gate) -> None:
    signal.raise_signal(signal.SIGTERM)
    value, error = gate.call(lambda: "never")
    assert value is None
    assert isinstance(error, JobCancelled)


def test_a_shielded_action_is_finished_before_the_exception(gate) -> None:
    done = []

    def action() -> None:
        signal.raise_signal(signal.SIGTERM)
        done.append("whole")

    def works() -> None:
        gate.shield(action)
        done.append("not reached")

    _, error = gate.call(works)
    assert isinstance(error, JobCancelled)
    assert done == ["whole"]


def test_a_thread_may_use_the_shield(gate) -> None:
    done: list[str] = []
    thread = threading.Thread(target=lambda: gate.shield(lambda: done.append("done")))
    thread.start()
    thread.join()
    assert done == ["done"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), OSError()])
def test_every_exception_is_a_value(gate, error) -> None:
    """Trap 8."""

    def works() -> None:
        raise error

    assert gate.call(works) == (None, error)


def test_an_async_function_is_cancelled_through_its_task(gate) -> None:
    import asyncio

    seen = []

    async def works() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(0.01, signal.raise_signal, signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        except JobCancelled:
            seen.append("inside")
            # A second signal does not cancel the clean-up.
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(0.01)
            seen.append("cleaned up")
            raise

    value, error = gate.call_async(works)
    assert value is None
    assert isinstance(error, JobCancelled)
    assert seen == ["inside", "cleaned up"]


def test_an_async_function_is_cancelled_by_a_signal_before_it(gate) -> None:
    import asyncio

    signal.raise_signal(signal.SIGTERM)
    _, error = gate.call_async(lambda: asyncio.sleep(60))
    assert isinstance(error, JobCancelled)


def test_an_async_result_and_error_pass(gate) -> None:
    async def gives() -> int:
        return 7

    async def fails() -> None:
        raise ValueError("mine")

    assert gate.call_async(gives) == (7, None)
    assert isinstance(gate.call_async(fails)[1], ValueError)


def test_an_idle_process_ends_by_sigterm() -> None:
    """Trap 5: a signal between two attempts must not stop the next one."""
    pid = os.fork()
    if pid == 0:
        gate = CancelGate()
        gate.install()
        signal.raise_signal(signal.SIGTERM)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM

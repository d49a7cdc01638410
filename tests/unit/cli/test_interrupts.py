"""Ctrl-C waits for the end of what it must not cut in two."""

from __future__ import annotations

import signal

import pytest

from headway.cli.interrupts import deferred_interrupt


def work(interrupts: int, done: list[str]) -> None:
    with deferred_interrupt():
        for _ in range(interrupts):
            signal.raise_signal(signal.SIGINT)
        done.append("whole")


def test_an_interrupt_comes_when_the_block_is_done() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work(1, done)
    assert done == ["whole"]


def test_a_second_interrupt_does_not_wait() -> None:
    """The block may be writing to a pipe that nobody reads."""
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work(2, done)
    assert done == []


def test_afterwards_interrupts_are_what_they_were() -> None:
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt():
        pass
    assert signal.getsignal(signal.SIGINT) is before

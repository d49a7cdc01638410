"""What is done to the server and when: a pure function of a seed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from headway.core.errors import ConfigError

FIRST_S = 1.0
"""Something runs by then."""
MEAN_GAP_S = 2.0
SHORTEST_GAP_S = 0.2
LONGEST_STOP_S = 8.0
"""Longer than the lease and the patience of the workers under fire."""
LONGEST_DOWN_S = 1.5
LONGEST_HOG_S = 3.0


class Action(StrEnum):
    """What is done."""

    KILL = "kill"
    """SIGKILL; what was started by the verifier is started again after `for_s` seconds."""
    STOP = "stop"
    """SIGSTOP, and SIGCONT after `for_s` seconds."""
    TERMINATE = "terminate"
    """SIGTERM, and a start again `for_s` seconds after it has ended."""
    STARVE_CPU = "starve_cpu"
    """Twice as many busy processes as there are CPUs beside the server, for `for_s` seconds."""
    STARVE_MEMORY = "starve_memory"
    """A process beside the server that fills a modest piece of memory, for `for_s` seconds."""


class Victim(StrEnum):
    """Whom it is done to."""

    API = "api"
    WORKER = "worker"
    """Either of the two."""
    KEEPER = "keeper"
    """The second worker's owner, `headway worker`."""
    FORKSERVER = "forkserver"
    JOB = "job"
    """The process of an attempt that runs, in either lane."""
    CHILD = "child"
    """A descendant of a job's process."""
    IDLE = "idle"
    """A spare or warm process that runs nothing."""
    EVERYTHING = "everything"
    MACHINE = "machine"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is done.

    Attributes:
        at_s: Seconds after the beginning.
        pick: Chooses among several candidates: 0 is the first, nearly 1 the last.
        for_s: See `Action`.
    """

    at_s: float
    action: Action
    victim: Victim
    pick: float = 0.0
    for_s: float = 0.0


_DECK = (
    (Action.KILL, Victim.API),
    (Action.KILL, Victim.WORKER),
    (Action.KILL, Victim.KEEPER),
    (Action.KILL, Victim.FORKSERVER),
    (Action.KILL, Victim.JOB),
    (Action.KILL, Victim.JOB),
    (Action.KILL, Victim.CHILD),
    (Action.KILL, Victim.IDLE),
    (Action.KILL, Victim.EVERYTHING),
    (Action.STOP, Victim.API),
    (Action.STOP, Victim.WORKER),
    (Action.STOP, Victim.WORKER),
    (Action.STOP, Victim.KEEPER),
    (Action.STOP, Victim.FORKSERVER),
    (Action.STOP, Victim.JOB),
    (Action.TERMINATE, Victim.API),
    (Action.TERMINATE, Victim.KEEPER),
    (Action.STARVE_CPU, Victim.MACHINE),
    (Action.STARVE_MEMORY, Victim.MACHINE),
)
"""Dealt like cards: each kind comes once before any comes again, in an order of its own."""

_LONGEST_S = {
    Action.KILL: LONGEST_DOWN_S,
    Action.TERMINATE: LONGEST_DOWN_S,
    Action.STOP: LONGEST_STOP_S,
    Action.STARVE_CPU: LONGEST_HOG_S,
    Action.STARVE_MEMORY: LONGEST_HOG_S,
}


def make_plan(seed: int, duration_s: float) -> tuple[Step, ...]:
    """The steps of a seed within `duration_s` seconds, in their order."""
    rng = random.Random(f"plan {seed}")
    cards = _cards(rng)
    steps = []
    at_s = FIRST_S
    while at_s < duration_s:
        action, victim = next(cards)
        longest_s = min(_LONGEST_S[action], duration_s)
        steps.append(
            Step(
                at_s=round(at_s, 3),
                action=action,
                victim=victim,
                pick=round(rng.random() * 0.999, 3),
                for_s=round(rng.uniform(0.0, longest_s), 3),
            )
        )
        at_s += SHORTEST_GAP_S + rng.expovariate(1 / (MEAN_GAP_S - SHORTEST_GAP_S))
    return tuple(steps)


def _cards(rng: random.Random) -> Iterator[tuple[Action, Victim]]:
    while True:
        yield from rng.sample(_DECK, len(_DECK))


def plan_lines(steps: Iterable[Step]) -> str:
    """A plan as JSON lines."""
    return "".join(f"{msgspec.json.encode(step).decode()}\n" for step in steps)


def plan_from(text: str) -> tuple[Step, ...]:
    """The plan that `plan_lines` wrote, perhaps edited.

    Raises:
        ConfigError: a line is no step; the text names the line.
    """
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                steps.append(msgspec.json.decode(line, type=Step))
            except msgspec.DecodeError as error:
                raise ConfigError(f"line {number} of the plan: {error}") from None
    return tuple(sorted(steps, key=lambda step: step.at_s))

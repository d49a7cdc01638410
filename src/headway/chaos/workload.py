"""The jobs that are submitted while the server is hurt, and what may become of each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headway.chaos.journal import digest, job_journal
from headway.chaos.operations import large_text
from headway.core.states import Outcome

LABEL = "chaos"
"""The label of each job: the number of its assignment."""
KEY = "chaos-key"
LEASE_S = 3.0
"""Of the workers under fire: short, so that a stopped one loses its jobs within a run."""
PATIENCE_S = 5.0
"""After which a stopped worker is killed by its owner."""
SUCCEEDS = frozenset({Outcome.SUCCEEDED})


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """One job that is to be submitted, under one idempotency key, as often as it takes.

    Attributes:
        number: Ascends from 0.
        input: Of the operation, the path of its journal included.
        outcomes: One of them it must have in the end.
        result: What it must return when it succeeds; the digest of a large text.
        lines: Numbered lines that a successful attempt prints.
        cancel_after_s: It is cancelled so long after it was accepted; None: never.
        delay_s: It is scheduled so far in the future.
        concurrency_key: As submitted.
        post_twice: It is posted again at once, as by a client that lost its answer.
        artifact: The digest of the artifact that a successful attempt leaves.
    """

    number: int
    operation: str
    input: dict[str, Any]
    outcomes: frozenset[Outcome] = SUCCEEDS
    result: Any = None
    lines: int = 0
    cancel_after_s: float | None = None
    delay_s: float = 0.0
    concurrency_key: str | None = None
    post_twice: bool = False
    artifact: str | None = None
    journal: Path = field(default_factory=Path)

    @property
    def idempotency_key(self) -> str:
        return f"chaos-{self.number}"


_Parts = dict[str, Any]
_SLOW = 0.15


def _quick(rng: random.Random, number: int) -> _Parts:
    return {"operation": "chaos.quick", "input": {"number": number}, "result": number}


def _inline(rng: random.Random, number: int) -> _Parts:
    return {"operation": "chaos.inline", "input": {"number": number}, "result": number}


def _steady(rng: random.Random, number: int) -> _Parts:
    lines, pause_s = rng.randint(20, 150), rng.choice((0.005, 0.01, 0.02))
    if rng.random() < _SLOW:
        # Still at work when its worker, stopped past its lease, has lost it to another.
        lines, pause_s = 40, 0.2
    given = {"lines": lines, "pause_s": pause_s}
    return {"operation": "chaos.steady", "input": given, "result": lines, "lines": lines}


def _flood(rng: random.Random, number: int) -> _Parts:
    lines, width = rng.choice(((20_000, 8), (50_000, 0), (2_000, 400)))
    given = {"lines": lines, "width": width}
    return {"operation": "chaos.flood", "input": given, "result": lines, "lines": lines}


def _brood(rng: random.Random, number: int) -> _Parts:
    seconds = rng.uniform(0.2, 1.5)
    return {"operation": "chaos.brood", "input": {"seconds": seconds}, "result": 2}


def _flaky(rng: random.Random, number: int) -> _Parts:
    retries = rng.randint(1, 3)
    return {"operation": "chaos.flaky", "input": {"retries": retries}, "result": retries,
            "lines": 1}  # fmt: skip


def _failing(rng: random.Random, number: int) -> _Parts:
    return {"operation": "chaos.failing", "input": {}, "outcomes": frozenset({Outcome.FAILED})}


def _crashing(rng: random.Random, number: int) -> _Parts:
    outcomes = frozenset({Outcome.QUARANTINED})
    return {"operation": "chaos.crashing", "input": {}, "outcomes": outcomes}


def _once(rng: random.Random, number: int) -> _Parts:
    outcomes = frozenset({Outcome.SUCCEEDED, Outcome.WORKER_LOST})
    return {"operation": "chaos.once", "input": {"seconds": rng.uniform(0.1, 1.5)},
            "outcomes": outcomes, "result": 1}  # fmt: skip


def _large(rng: random.Random, number: int) -> _Parts:
    kib = rng.choice((16, 1024, 3000))
    return {"operation": "chaos.large", "input": {"kib": kib}, "result": digest(large_text(kib))}


def _keeps(rng: random.Random, number: int) -> _Parts:
    kept = digest(large_text(64))
    return {"operation": "chaos.keeps", "input": {"kib": 64}, "result": 64, "artifact": kept}


def _cancelled(rng: random.Random, number: int) -> _Parts:
    outcomes = frozenset({Outcome.CANCELLED})
    return {"operation": "chaos.sleeper", "input": {}, "outcomes": outcomes,
            "cancel_after_s": rng.uniform(0.0, 2.0)}  # fmt: skip


def _cancelled_early(rng: random.Random, number: int) -> _Parts:
    return _cancelled(rng, number) | {"delay_s": 3600.0, "cancel_after_s": rng.uniform(0.0, 1.0)}


def _scheduled(rng: random.Random, number: int) -> _Parts:
    return _quick(rng, number) | {"delay_s": rng.uniform(0.5, 3.0)}


def _exclusive(rng: random.Random, number: int) -> _Parts:
    return {"operation": "chaos.exclusive", "input": {"seconds": rng.uniform(0.05, 0.3)},
            "result": 1, "concurrency_key": KEY}  # fmt: skip


_DECK: tuple[Callable[[random.Random, int], _Parts], ...] = (
    _quick, _quick, _quick, _quick, _quick, _quick, _inline, _inline, _steady, _steady, _steady,
    _flood, _brood, _flaky, _flaky, _failing, _crashing, _once, _large, _keeps, _cancelled,
    _cancelled_early, _scheduled, _exclusive, _exclusive,
)  # fmt: skip


def assignments(seed: int, journals: Path) -> Iterator[Assignment]:
    """The jobs of a seed, without end: each kind in turn, in an order of its own.

    Args:
        seed: Equal seeds give equal jobs.
        journals: Directory of the journals.
    """
    rng = random.Random(f"work {seed}")
    number = 0
    while True:
        for make in rng.sample(_DECK, len(_DECK)):
            yield _assignment(rng, number, make(rng, number), journals)
            number += 1


def shared_journal(journals: Path) -> Path:
    """Where those write who may not do it at the same time."""
    return job_journal(journals, "shared")


def _assignment(rng: random.Random, number: int, parts: _Parts, journals: Path) -> Assignment:
    journal = job_journal(journals, str(number))
    given = {**parts.pop("input"), "journal": str(journal)}
    if parts["operation"] == "chaos.exclusive":
        given["shared"] = str(shared_journal(journals))
    return Assignment(
        number=number, input=given, journal=journal, post_twice=rng.random() < 0.15, **parts
    )

"""A comparison as it is published: `headway compare --json`, `comparison.json`, the dashboard.

Names carry units as in the report. A change is always B's, measured from A.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

COMPARISON_SCHEMA_VERSION = 1

Word = Literal["better", "worse", "cannot tell"]
Scale = Literal["relative", "absolute"]


class Side(msgspec.Struct, kw_only=True, frozen=True):
    """One of the two things that are compared."""

    path: str
    """A run directory, the first of several, or the file of another tool."""
    run_id: str | None
    created: str | None
    target_url: str | None
    model: str | None
    verdict: str | None
    """The run's; null for another tool's file, which has none."""
    imported_from: str | None = None
    """The tool that measured it, when that was not Headway."""


class Unlike(msgspec.Struct, kw_only=True, frozen=True):
    """Something besides the target that differs between A and B."""

    what: Literal["workload", "seed", "cache", "load", "client"]
    text: str
    a: Any
    b: Any


class MetricComparison(msgspec.Struct, kw_only=True, frozen=True):
    """One number of A against the same of B."""

    name: str
    """For example `ttft_p99_s`."""
    better: Literal["lower", "higher"]
    a: float | None
    b: float | None
    scale: Scale
    """`relative`: changes are fractions of A. `absolute`: they are B − A."""
    change: float | None
    low: float | None
    high: float | None
    """The interval of the change at the comparison's confidence, looking at this number alone."""
    chance: float | None
    """The p-value: how often chance alone makes a change as large."""
    effect_size: float | None
    effect_kind: Literal["cliffs_delta", "cohens_h", "cohens_dz"] | None
    """Cliff's delta of single requests (durations): the probability that one of B took longer,
    less the probability that it took less long. Cohen's h (shares). Cohen's d_z (rounds): the mean
    of the differences over their standard deviation."""
    word: Word
    reason: str
    standard_error: float | None
    """On the logarithm for relative changes."""
    freedom: float | None
    pairs: int | None = None
    """Rounds of an interleaved comparison."""


class StageComparison(msgspec.Struct, kw_only=True, frozen=True):
    """One stage of A against the same stage of B."""

    name: str
    profile: dict[str, Any]
    word: Literal["better", "worse", "mixed", "cannot tell"]
    cautions: list[str]
    metrics: list[MetricComparison]


class Comparison(msgspec.Struct, kw_only=True, frozen=True):
    """A against B. A is what was there before: the baseline."""

    schema_version: int = COMPARISON_SCHEMA_VERSION
    method: Literal["block bootstrap", "paired rounds", "values only"]
    a: Side
    b: Side
    confidence: float
    minimum_change: float
    """Smaller changes get no word, however certain they are."""
    comparisons: int
    """How many numbers were looked at; words hold for all of them together."""
    word: Literal["better", "worse", "mixed", "cannot tell"]
    unlike: list[Unlike]
    """What differs besides the target and was allowed to; empty when nothing does."""
    cautions: list[str]
    stages: list[StageComparison]


class Refusal(msgspec.Struct, kw_only=True, frozen=True):
    """A and B cannot be compared: what differs is not the target alone."""

    schema_version: int = COMPARISON_SCHEMA_VERSION
    a: Side
    b: Side
    unlike: list[Unlike]


def comparison_json(outcome: Comparison | Refusal) -> bytes:
    """As indented JSON; the same outcome gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(outcome), indent=2) + b"\n"

"""From differences to words: what may be said when many numbers were looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from headway.compare.difference import Difference, holm
from headway.compare.metrics import Metric
from headway.compare.model import MetricComparison, Word

OverallWord = Literal["better", "worse", "mixed", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """When a difference gets a word.

    Args:
        confidence: That of the intervals, and that no word at all is said where nothing differs.
        minimum_change: The least relative change that counts. Two equal servers on one machine
            differ by tenths of a percent for reasons of their own, and enough requests prove it.
    """

    confidence: float = 0.95
    minimum_change: float = 0.01


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One number of A and of B, before words are chosen. Without a difference, the reason why."""

    metric: Metric
    a: float | None
    b: float | None
    difference: Difference | None = None
    missing: str = ""
    effect: float | None = None
    pairs: int | None = None


def conclude(findings: Sequence[Finding], rules: Rules) -> list[MetricComparison]:
    """Choose the words for all findings of a comparison together."""
    chances = [f.difference.chance() for f in findings if f.difference is not None]
    counted = iter(holm(chances, 1 - rules.confidence))
    return [
        _undecided(finding)
        if finding.difference is None
        else _decided(finding, finding.difference, next(counted), rules)
        for finding in findings
    ]


def overall(words: Iterable[Word]) -> OverallWord:
    """One word for several; `mixed` where some say better and others worse."""
    said = set(words) - {"cannot tell"}
    if len(said) == 2:
        return "mixed"
    return said.pop() if said else "cannot tell"


def _undecided(finding: Finding) -> MetricComparison:
    return _published(finding, "cannot tell", finding.missing, None, (None, None))


def _decided(
    finding: Finding, difference: Difference, counts: bool, rules: Rules
) -> MetricComparison:
    metric = finding.metric
    low, high = (metric.change(end) for end in difference.interval(rules.confidence))
    change = metric.change(difference.value)
    least = rules.minimum_change if metric.scale == "relative" else 0.0
    word: Word = "cannot tell"
    if difference.standard_error == 0 and change == 0:
        reason = "no difference at all"
    elif low > -least and high < least:
        reason = f"no difference beyond ±{least:.1%}"
    elif not counts:
        alone = low > 0 or high < 0
        reason = (
            "clear if it had been the only number looked at" if alone else "chance can explain it"
        )
    elif abs(change) < least:
        reason = f"certain, but less than the {least:.1%} that counts"
    else:
        word = "better" if (change > 0) == (metric.better == "higher") else "worse"
        reason = "chance does not explain it"
    return _published(finding, word, reason, difference, (low, high))


def _published(
    finding: Finding,
    word: Word,
    reason: str,
    difference: Difference | None,
    interval: tuple[float | None, float | None],
) -> MetricComparison:
    metric = finding.metric
    return MetricComparison(
        name=metric.name,
        better=metric.better,
        a=finding.a,
        b=finding.b,
        scale=metric.scale,
        change=metric.change(difference.value) if difference else _plain_change(finding),
        low=interval[0],
        high=interval[1],
        chance=difference.chance() if difference else None,
        effect_size=finding.effect,
        effect_kind=_effect_kind(finding),
        word=word,
        reason=reason,
        standard_error=difference.standard_error if difference else None,
        freedom=difference.freedom if difference else None,
        pairs=finding.pairs,
    )


def _effect_kind(finding: Finding) -> Literal["cliffs_delta", "cohens_h", "cohens_dz"] | None:
    if finding.effect is None:
        return None
    if finding.pairs is not None:
        return "cohens_dz"
    return "cliffs_delta" if finding.metric.per_mille is not None else "cohens_h"


def _plain_change(finding: Finding) -> float | None:
    a, b = finding.a, finding.b
    if a is None or b is None:
        return None
    if finding.metric.scale == "absolute":
        return b - a
    return (b - a) / a if a else None

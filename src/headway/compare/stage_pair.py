"""One stage of A against the same stage of B, from the records of both."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from headway.compare.bootstrap import Estimate, estimate
from headway.compare.difference import independent
from headway.compare.metrics import Metric, cliffs_delta, cohens_h
from headway.compare.samples import Blocks, Durations, Ratio, StageSamples, TooShort
from headway.compare.words import Finding
from headway.report.model import StageReport
from headway.report.quantiles import samples_needed


@dataclass(frozen=True)
class MeasuredStage:
    """A stage's report and the records behind it."""

    report: StageReport
    samples: StageSamples


class StagePair:
    """Finds the differences of two stages.

    Args:
        a: The baseline.
        b: What is held against it.
        rng: The comparison's only generator.
    """

    def __init__(self, a: MeasuredStage, b: MeasuredStage, rng: random.Random) -> None:
        self._a, self._b, self._rng = a, b, rng
        self._effects: dict[str, float | None] = {}

    def findings(self, metrics: Sequence[Metric]) -> Iterator[Finding]:
        """One for each metric."""
        for metric in metrics:
            yield self._finding(metric)

    def _finding(self, metric: Metric) -> Finding:
        values = [metric.read(stage.report) for stage in (self._a, self._b)]
        known = Finding(metric=metric, a=values[0], b=values[1], effect=self._effect(metric))
        reason = unmeasured(*values) or self._unlike(metric)
        if reason:
            return _without(known, reason)
        estimates = []
        for side, stage in zip("AB", (self._a, self._b), strict=True):
            found = self._estimate(metric, stage)
            if isinstance(found, str):
                return _without(known, f"{side}: {found}")
            estimates.append(found)
        return Finding(
            metric=metric,
            a=known.a,
            b=known.b,
            difference=independent(*estimates),
            effect=known.effect,
        )

    def _unlike(self, metric: Metric) -> str | None:
        """Why this number of the two stages is not the same thing."""
        a, b = self._a.report, self._b.report
        if metric.measure == "good" and _limits(a) != _limits(b):
            return "the objectives differ"
        if metric.measure in ("tpot", "tokens"):
            sources = [" and ".join(sorted(s.tokens.output_sources)) for s in (a, b)]
            if sources[0] != sources[1]:
                return f"A counts output tokens by {sources[0]}, B by {sources[1]}"
        return None

    def _estimate(self, metric: Metric, stage: MeasuredStage) -> Estimate | str:
        """The number on its scale with its uncertainty, or why it has none."""
        data = _data(metric, stage.samples)
        if isinstance(data, Durations):
            assert metric.per_mille is not None
            needed = samples_needed(metric.per_mille)
            if len(data.values_s) < needed:
                return f"{len(data.values_s)} requests; this percentile needs {needed}"
            blocks = data.blocks(metric.per_mille / 1000)
        else:
            blocks = data.blocks()
        if isinstance(blocks, TooShort):
            return (
                f"too short: its values depend on each other over {blocks.memory_s:.1f} s, so "
                f"{blocks.needed_s:.0f} s are needed"
            )
        return self._bootstrapped(metric, blocks)

    def _bootstrapped(self, metric: Metric, blocks: Blocks) -> Estimate | str:
        found = estimate(blocks.data, metric.scaled, self._rng)
        if found is None:
            return "too few events to tell chance from difference"
        error = found.standard_error / math.sqrt(blocks.variance_share)
        return Estimate(found.value, error, found.freedom)

    def _effect(self, metric: Metric) -> float | None:
        if metric.per_mille is not None:
            if metric.measure not in self._effects:
                values = [s.samples.durations(metric.measure).values_s for s in (self._a, self._b)]
                self._effects[metric.measure] = cliffs_delta(*values)
            return self._effects[metric.measure]
        a, b = (metric.read(stage.report) for stage in (self._a, self._b))
        if metric.scale == "relative" or a is None or b is None:
            return None
        return cohens_h(a, b)


def unmeasured(a: float | None, b: float | None) -> str | None:
    """Where a number is missing; None when both are there."""
    if a is None:
        return "not measured" if b is None else "not measured in A"
    return "not measured in B" if b is None else None


def _without(finding: Finding, reason: str) -> Finding:
    return Finding(
        metric=finding.metric, a=finding.a, b=finding.b, missing=reason, effect=finding.effect
    )


def _limits(stage: StageReport) -> dict[str, float]:
    return {o.name: o.limit_s for o in stage.goodput.objectives} if stage.goodput else {}


def _data(metric: Metric, samples: StageSamples) -> Durations | Ratio:
    if metric.per_mille is not None:
        return samples.durations(metric.measure)
    ratio = {
        "completed": samples.completions,
        "tokens": samples.output_tokens,
        "errors": samples.errors,
        "good": samples.good,
    }[metric.measure]()
    assert ratio is not None, "a number that was reported has data"
    return ratio

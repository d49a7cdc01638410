"""Interleaved rounds compared: each pair of runs is one observation of the difference.

What changes over minutes (another tenant, a warming GPU) changes both runs of a pair alike and
cancels; the spread between pairs is the uncertainty, whatever causes it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from headway.compare.comparison import compared, side_of
from headway.compare.compatibility import matched_stages, unlike
from headway.compare.difference import paired
from headway.compare.metrics import Metric
from headway.compare.model import Comparison, Refusal, Side, StageComparison, Unlike
from headway.compare.options import CompareOptions
from headway.compare.words import Finding, conclude, overall
from headway.core.errors import ConfigError
from headway.records.run_dir import RunDirectory
from headway.report.model import Report, StageReport
from headway.report.run import build

MIN_PAIRS = 3
"""Student's 97.5% quantile is 4.3 for three pairs and 12.7 for two: nothing to rely on."""

StagePairs = list[tuple[StageReport, StageReport]]


def compare_rounds(
    rounds: Sequence[tuple[Path, Path]], options: CompareOptions | None = None
) -> Comparison | Refusal:
    """Compare pairs of runs that were taken in turn.

    Args:
        rounds: Run directories of A and B, a pair a round.
        options: What to look at, and how strictly.

    Returns:
        A refusal where within a pair more than the target differs and that was not allowed.

    Raises:
        ConfigError: there are fewer than three pairs, or one is no run directory.
        InputError: the records of one are damaged.
    """
    options = options or CompareOptions()
    if len(rounds) < MIN_PAIRS:
        raise ConfigError(f"{len(rounds)} pairs of runs tell nothing; at least {MIN_PAIRS} do")
    reports = [(build(RunDirectory(a)), build(RunDirectory(b))) for a, b in rounds]
    different = list(_unlike(reports))
    sides = [_side([(pair[i], path[i]) for pair, path in zip(reports, rounds, strict=True)])
             for i in (0, 1)]  # fmt: skip
    if different and not options.allow_different:
        return Refusal(a=sides[0], b=sides[1], unlike=different)
    stages = _stages(reports, options)
    return Comparison(
        method="paired rounds",
        a=sides[0],
        b=sides[1],
        confidence=options.rules.confidence,
        minimum_change=options.rules.minimum_change,
        comparisons=compared(stages),
        word=overall(metric.word for stage in stages for metric in stage.metrics),
        unlike=different,
        cautions=[],
        stages=stages,
    )


def _unlike(reports: Sequence[tuple[Report, Report]]) -> Iterator[Unlike]:
    told = set()
    for a, b in reports:
        for one in unlike(a, b):
            if one.text not in told:
                told.add(one.text)
                yield one


def _side(runs: Sequence[tuple[Report, Path]]) -> Side:
    first = side_of(*runs[0])
    words = Counter(report.verdict for report, _ in runs)
    verdict = "VALID" if set(words) == {"VALID"} else words.most_common(1)[0][0]
    return msgspec.structs.replace(first, verdict=verdict)


def _stages(
    reports: Sequence[tuple[Report, Report]], options: CompareOptions
) -> list[StageComparison]:
    by_stage = [
        pairs for pairs in _stages_of_all_rounds(reports) if options.wants_stage(pairs[0][0].name)
    ]
    metrics = options.chosen_metrics()
    findings = [[_finding(metric, pairs) for metric in metrics] for pairs in by_stage]
    decided = iter(conclude([f for stage in findings for f in stage], options.rules))
    stages = []
    for pairs in by_stage:
        chosen = [next(decided) for _ in metrics]
        stages.append(
            StageComparison(
                name=pairs[0][0].name,
                profile=pairs[0][0].profile,
                word=overall(metric.word for metric in chosen),
                cautions=list(_cautions(pairs)),
                metrics=chosen,
            )
        )
    return stages


def _stages_of_all_rounds(reports: Sequence[tuple[Report, Report]]) -> list[StagePairs]:
    """For each stage that every round has on both sides, its pairs."""
    rounds = [{(a.name, a.stage): (a, b) for a, b in matched_stages(*pair)} for pair in reports]
    return [
        [matched[key] for matched in rounds]
        for key in rounds[0]
        if all(key in matched for matched in rounds)
    ]


def _finding(metric: Metric, pairs: StagePairs) -> Finding:
    scaled = [(_scaled(metric, a), _scaled(metric, b)) for a, b in pairs]
    known = [(a, b) for a, b in scaled if a is not None and b is not None]
    if len(known) < len(pairs):
        missing = "not measured"
        if known:
            missing = f"measured in {len(known)} of {len(pairs)} pairs of runs only"
        return Finding(metric=metric, a=None, b=None, missing=missing, pairs=len(known))
    found = paired([b - a for a, b in known])
    spread = found.standard_error * math.sqrt(len(known))
    return Finding(
        metric=metric,
        a=_centre(metric, [a for a, _ in known]),
        b=_centre(metric, [b for _, b in known]),
        difference=found,
        effect=found.value / spread if spread else None,
        pairs=len(known),
    )


def _scaled(metric: Metric, stage: StageReport) -> float | None:
    value = metric.read(stage)
    if value is None or (metric.scale == "relative" and value <= 0):
        return None
    return metric.scaled(value)


def _centre(metric: Metric, scaled: Sequence[float]) -> float:
    """The mean of the rounds, geometric where changes are relative."""
    mean = math.fsum(scaled) / len(scaled)
    return math.exp(mean) if metric.scale == "relative" else mean


def _cautions(pairs: StagePairs) -> Iterator[str]:
    for side, place in (("A", 0), ("B", 1)):
        stages = [pair[place] for pair in pairs]
        # That a single round is short does not matter here: its noise shows between the rounds.
        said = [set(stage.verdict.words) - {"TOO_FEW_SAMPLES"} for stage in stages]
        bad = [words for words in said if words]
        words = sorted(set().union(*said))
        if bad:
            count = f"{len(bad)} of {len(stages)} runs"
            yield f"{count} of {side} are not valid measurements: {', '.join(words)}"
        failed = sum(stage.counts.errored for stage in stages)
        if failed:
            yield f"{failed} requests of {side} failed; durations are those of the others"

"""Two run directories compared: what differs, how surely, or why they cannot be compared."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from headway.compare.compatibility import matched_stages, unlike
from headway.compare.model import Comparison, Refusal, Side, StageComparison
from headway.compare.options import CompareOptions
from headway.compare.samples import StageSamples
from headway.compare.stage_pair import MeasuredStage, StagePair
from headway.compare.words import Finding, conclude, overall
from headway.core.errors import ConfigError
from headway.records.run_dir import RunDirectory
from headway.report.model import Report, StageReport
from headway.report.run import MeasuredRun, measure


def compare_runs(a: Path, b: Path, options: CompareOptions | None = None) -> Comparison | Refusal:
    """Compare two runs by their records.

    Args:
        a: Run directory of the baseline.
        b: Run directory of what is held against it.
        options: What to look at, and how strictly.

    Returns:
        A refusal where more than the target differs and that was not allowed.

    Raises:
        ConfigError: one is no run directory, or a stage or metric is asked for that is not there.
        InputError: the records of one are damaged.
    """
    options = options or CompareOptions()
    metrics = options.chosen_metrics()
    runs = [measure(RunDirectory(path)) for path in (a, b)]
    reports = [run.report for run in runs]
    sides = [side_of(report, path) for report, path in zip(reports, (a, b), strict=True)]
    different = unlike(*reports)
    if different and not options.allow_different:
        return Refusal(a=sides[0], b=sides[1], unlike=different)
    pairs = wanted_pairs(reports[0], reports[1], options)
    rng = random.Random(options.seed)
    findings = [
        list(StagePair(_stage(runs[0], one), _stage(runs[1], other), rng).findings(metrics))
        for one, other in pairs
    ]
    stages = stage_comparisons(pairs, findings, options)
    return Comparison(
        method="block bootstrap",
        a=sides[0],
        b=sides[1],
        confidence=options.rules.confidence,
        minimum_change=options.rules.minimum_change,
        comparisons=compared(stages),
        word=overall(m.word for stage in stages for m in stage.metrics),
        unlike=different,
        cautions=list(_unmatched(reports[0], reports[1])),
        stages=stages,
    )


def side_of(report: Report, path: Path) -> Side:
    """A run as one side of a comparison."""
    return Side(
        path=str(path),
        run_id=report.run.run_id,
        created=report.run.created,
        target_url=report.run.target_url,
        model=report.run.model,
        verdict=report.verdict,
    )


def wanted_pairs(
    a: Report, b: Report, options: CompareOptions
) -> list[tuple[StageReport, StageReport]]:
    """The stages that both have and that are asked for.

    Raises:
        ConfigError: none of the stages that were asked for is in both.
    """
    both = matched_stages(a, b)
    pairs = [pair for pair in both if options.wants_stage(pair[0].name)]
    if not pairs and options.stages:
        names = ", ".join(one.name for one, _ in both) or "none"
        raise ConfigError(f"no stage that both runs have is called so; both have {names}")
    return pairs


def stage_comparisons(
    pairs: Sequence[tuple[StageReport, StageReport]],
    findings: Sequence[Sequence[Finding]],
    options: CompareOptions,
) -> list[StageComparison]:
    """Stages with their words, chosen for all findings together."""
    decided = iter(conclude([f for stage in findings for f in stage], options.rules))
    stages = []
    for (one, other), found in zip(pairs, findings, strict=True):
        metrics = [next(decided) for _ in found]
        stages.append(
            StageComparison(
                name=one.name,
                profile=one.profile,
                word=overall(metric.word for metric in metrics),
                cautions=list(_cautions(one, other)),
                metrics=metrics,
            )
        )
    return stages


def compared(stages: Iterable[StageComparison]) -> int:
    """How many numbers a word could have been said of."""
    return sum(metric.low is not None for stage in stages for metric in stage.metrics)


def _stage(run: MeasuredRun, report: StageReport) -> MeasuredStage:
    return MeasuredStage(report, StageSamples(run.stages[report.stage], run.objectives))


def _cautions(a: StageReport, b: StageReport) -> Iterator[str]:
    for side, stage in (("A", a), ("B", b)):
        if stage.verdict.word != "VALID":
            yield f"{side} is not a valid measurement: {', '.join(stage.verdict.words)}"
        if stage.partial:
            yield f"{side}'s stage is partial"
        if stage.counts.errored:
            failed = f"{stage.counts.errored} of {stage.counts.offered}"
            yield f"in {side} {failed} requests failed; durations are those of the others"


def _unmatched(a: Report, b: Report) -> Iterator[str]:
    pairs = matched_stages(a, b)
    for side, report, place in (("A", a, 0), ("B", b, 1)):
        matched = {pair[place].stage for pair in pairs}
        for stage in report.counted:
            if stage.stage not in matched:
                other = "B" if side == "A" else "A"
                yield f"{side}'s stage {stage.name} has no counterpart in {other}"

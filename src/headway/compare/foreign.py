"""Comparisons that are not of two run directories: at least one side is another tool's file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headway.compare.comparison import compare_runs, side_of
from headway.compare.metrics import Metric
from headway.compare.model import Comparison, Refusal, Side, StageComparison, Unlike
from headway.compare.options import CompareOptions
from headway.compare.stage_pair import unmeasured
from headway.compare.words import Finding, conclude
from headway.core.errors import ConfigError
from headway.interchange.imported import ImportedRun, ImportedStage, read_imported
from headway.records.run_dir import RunDirectory
from headway.report.model import Report, StageReport
from headway.report.run import build


def compare_paths(a: Path, b: Path, options: CompareOptions | None = None) -> Comparison | Refusal:
    """Compare two runs, each a run directory or a result file of GuideLLM or vLLM.

    A file has values and no records: changes are shown, and every word is "cannot tell".

    Raises:
        ConfigError, InputError: as `compare_runs`; or one is a file of no tool that is known.
    """
    options = options or CompareOptions()
    if not a.is_file() and not b.is_file():
        return compare_runs(a, b, options)
    one, other = _values_of(a), _values_of(b)
    unlike = _unlike(one, other)
    if not options.allow_different:
        return Refusal(a=one.side, b=other.side, unlike=unlike)
    return Comparison(
        method="values only",
        a=one.side,
        b=other.side,
        confidence=options.rules.confidence,
        minimum_change=options.rules.minimum_change,
        comparisons=0,
        word="cannot tell",
        unlike=unlike,
        cautions=[],
        stages=_stages(one, other, options),
    )


@dataclass(frozen=True)
class _Stage:
    name: str
    read: Callable[[Metric], float | None]


@dataclass(frozen=True)
class _Values:
    side: Side
    client: str
    stages: list[_Stage]


def _values_of(path: Path) -> _Values:
    if path.is_file():
        return _imported(read_imported(path), path)
    return _measured(build(RunDirectory(path)), path)


def _imported(run: ImportedRun, path: Path) -> _Values:
    tool = f"{run.tool} {run.tool_version}" if run.tool_version else run.tool
    side = Side(
        path=str(path),
        run_id=None,
        created=run.created,
        target_url=run.target_url,
        model=run.model,
        verdict=None,
        imported_from=tool,
    )
    return _Values(side, tool, [_Stage(stage.name, _reader(stage)) for stage in run.stages])


def _measured(report: Report, path: Path) -> _Values:
    version = (report.run.provenance.get("versions") or {}).get("headway", "")
    stages = [_Stage(stage.name, _report_reader(stage)) for stage in report.stages]
    return _Values(side_of(report, path), f"Headway {version}".strip(), stages)


def _reader(stage: ImportedStage) -> Callable[[Metric], float | None]:
    return lambda metric: stage.values.get(metric.name)


def _report_reader(stage: StageReport) -> Callable[[Metric], float | None]:
    return lambda metric: metric.read(stage)


def _unlike(a: _Values, b: _Values) -> list[Unlike]:
    client = "the numbers were measured by different clients, each with its own definitions"
    workload = "another tool's file does not tell what was sent"
    return [
        Unlike(what="client", text=f"{client}: {a.client}, {b.client}", a=a.client, b=b.client),
        Unlike(what="workload", text=workload, a=None, b=None),
    ]


def _stages(a: _Values, b: _Values, options: CompareOptions) -> list[StageComparison]:
    left, right = ([s for s in side.stages if options.wants_stage(s.name)] for side in (a, b))
    if not left or not right:
        left, right = left or a.stages, right or b.stages
    if len(left) != len(right):
        names = " and ".join(", ".join(stage.name for stage in side.stages) for side in (a, b))
        raise ConfigError(
            f"A has {len(left)} stages and B {len(right)}: choose with --stage ({names})"
        )
    return [_stage(one, other, options) for one, other in zip(left, right, strict=True)]


def _stage(a: _Stage, b: _Stage, options: CompareOptions) -> StageComparison:
    reason = "another tool's file has no records to tell chance from difference"
    findings = []
    for metric in options.chosen_metrics():
        values = a.read(metric), b.read(metric)
        missing = unmeasured(*values) or reason
        findings.append(Finding(metric=metric, a=values[0], b=values[1], missing=missing))
    return StageComparison(
        name=a.name if a.name == b.name else f"{a.name} / {b.name}",
        profile={},
        word="cannot tell",
        cautions=[],
        metrics=conclude(findings, options.rules),
    )

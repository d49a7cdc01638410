"""The targets: who holds each, who waits for it, and how its figures went over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headway.core.states import JobState
from headway.dashboard import words
from headway.dashboard.job_parts import (
    job_title,
    label_chips,
    progress_bar,
    run_time,
    state_chip,
    target_of,
)
from headway.dashboard.layout import Live, empty, heading, page, region
from headway.dashboard.reader import Reader
from headway.dashboard.registered_targets import registered_targets
from headway.dashboard.runs import Run
from headway.dashboard.words import moment
from headway.operations.result import StageFigures
from headway.report.html.chart import Line, LineChart, draw_lines
from headway.report.html.markup import Child, Markup, fragment, tag
from headway.report.html.numbers import ms, plain
from headway.report.html.tables import chip, table
from headway.store.targets import TargetRow

MAX_POINTS = 100
MAX_LINES = 5
"""As many stages as a chart can keep apart by colour."""
RECENT = 10

_Read = Callable[[StageFigures], float | None]


def _in_ms(read: _Read) -> _Read:
    def in_ms(stage: StageFigures) -> float | None:
        value = read(stage)
        return None if value is None else value * 1000

    return in_ms


_METRICS: tuple[tuple[str, str, _Read], ...] = (
    ("Completed requests", "requests/s", lambda stage: stage.completed_per_s),
    ("Output tokens", "tokens/s", lambda stage: stage.output_tokens_per_s),
    ("TTFT p50", "ms", _in_ms(lambda stage: stage.ttft_p50_s)),
    ("TTFT p99", "ms", _in_ms(lambda stage: stage.ttft_p99_s)),
    ("Latency p50", "ms", _in_ms(lambda stage: stage.latency_p50_s)),
    ("Latency p99", "ms", _in_ms(lambda stage: stage.latency_p99_s)),
)


@dataclass(frozen=True)
class Target:
    """A target and its runs, newest first."""

    name: str
    runs: Sequence[Run]

    def in_state(self, state: JobState) -> list[Run]:
        return [run for run in self.runs if run.job.state is state]

    @property
    def waiting(self) -> list[Run]:
        """Who waits for it, the next first."""
        return sorted(
            self.in_state(JobState.PENDING), key=lambda run: (-run.job.priority, run.job.created_at)
        )

    @property
    def ended(self) -> list[Run]:
        return [run for run in self.runs if run.job.state.is_terminal]


def targets_of(runs: Sequence[Run]) -> list[Target]:
    """The targets of all runs, the last used first."""
    by_name: dict[str, list[Run]] = {}
    for run in runs:
        name = target_of(run.job)
        if name is not None:
            by_name.setdefault(name, []).append(run)
    return [Target(name, found) for name, found in by_name.items()]


def targets_page(
    targets: Sequence[Target],
    position: str,
    now: datetime,
    reader: Reader,
    registered: Sequence[TargetRow] = (),
) -> str:
    """The document."""
    new_run = tag("a", "New run", href="/runs/new", class_="button primary")
    start = tag("a", "Start a run", href="/runs/new")
    cards = [_card(target, now) for target in targets]
    nothing = empty("No target was measured yet.", start if reader.may_run else None)
    if reader.name is not None and not registered:
        # A shared server measures nothing else: to offer a run would lead to a refusal.
        nothing = empty(
            "No target is registered for this workspace. An administrator adds one: "
            f"headway targets set NAME URL --for {reader.workspace}"
        )
    return page(
        "Targets",
        "/targets",
        heading("Targets", new_run if reader.may_run else None),
        registered_targets(registered, may_run=reader.may_run),
        region("targets", cards or nothing, kind="div"),
        live=Live("/v1/jobs/stream", position, gap_ms=2000),
        reader=reader,
    )


def _card(target: Target, now: datetime) -> Markup:
    return tag(
        "section",
        tag("h2", target.name),
        _holder(target, now),
        _queue(target),
        _history(target),
        _recent(target, now),
        class_="target",
    )


def _holder(target: Target, now: datetime) -> Markup:
    running = target.in_state(JobState.RUNNING)
    if not running:
        return tag("p", tag("span", "free", class_="state good"), class_="holder")
    run = running[0]
    return tag(
        "div",
        tag("p", state_chip(run.job), " held by ", _link(run), ", running for ",
            run_time(run.job, now), class_="holder"),
        progress_bar(run.job),
    )  # fmt: skip


def _link(run: Run) -> Markup:
    name = job_title(run.job)
    text = name if name != target_of(run.job) else run.job.id
    return tag("a", text, href=f"/jobs/{run.job.id}")


def _queue(target: Target) -> Markup | None:
    if not target.waiting:
        return None
    lines = [
        tag("li", _link(run), " ", tag("span", "submitted ", moment(run.job.created_at),
            class_="note"), " ", label_chips(run.job))
        for run in target.waiting
    ]  # fmt: skip
    return fragment(tag("h3", f"Waiting: {len(lines)}"), tag("ol", lines, class_="queue"))


def _history(target: Target) -> Markup | None:
    measured = [run for run in target.ended if run.result is not None and run.result.stages]
    if not measured:
        return None
    like = [run for run in measured if run.likeness == measured[0].likeness][:MAX_POINTS][::-1]
    names = _common_stages(like)
    charts = [_chart(title, unit, read, like, names) for title, unit, read in _METRICS]
    left_out = len(measured) - len(like)
    others = f" {left_out} with other requests are left out." if left_out else ""
    many = "1 run" if len(like) == 1 else f"{len(like)} runs"
    return fragment(
        tag("h3", "Over time"),
        tag("p", f"{many} with the model and the requests of the newest, by stage; hollow points"
            f" cannot be trusted.{others}", class_="note"),
        tag("div", [chart for chart in charts if chart], class_="charts"),
    )  # fmt: skip


def _common_stages(runs: Sequence[Run]) -> list[str]:
    """The stages that most runs have; of a sweep, the ends rather than what lies between."""
    counts = Counter(stage.name for run in runs for stage in _stages(run))
    first = [stage.name for stage in _stages(runs[-1])]
    names = sorted(counts, key=lambda name: (-counts[name], name not in first))
    return names[:MAX_LINES]


def _stages(run: Run) -> tuple[StageFigures, ...]:
    return () if run.result is None else run.result.stages


def _chart(
    title: str, unit: str, read: _Read, runs: Sequence[Run], names: Sequence[str]
) -> Markup | None:
    lines = []
    for tone, name in enumerate(names, start=1):
        found = [_stage(run, name) for run in runs]
        values = [None if stage is None else read(stage) for stage in found]
        if any(value is not None for value in values):
            marks = [stage is not None and stage.verdict == "VALID" for stage in found]
            lines.append(Line(name, values, tone, bridged=True, marks=marks))
    if not lines:
        return None
    first = runs[0].job.created_at
    unit_of_time, time_name = _time_unit(runs[-1].job.created_at - first)
    return draw_lines(
        LineChart(
            title=title,
            x=[(run.job.created_at - first) / unit_of_time for run in runs],
            lines=lines,
            x_label=f"{time_name} since the first of them",
            y_unit=unit,
            table="The table below has the newest runs.",
            names=[run.job.created_at.strftime("%Y-%m-%d %H:%M UTC") for run in runs],
        )
    )


def _time_unit(span: timedelta) -> tuple[timedelta, str]:
    for unit, name in ((timedelta(days=1), "days"), (timedelta(hours=1), "hours")):
        if span > 3 * unit:
            return unit, name
    return timedelta(minutes=1), "minutes"


def _stage(run: Run, name: str) -> StageFigures | None:
    return next((stage for stage in _stages(run) if stage.name == name), None)


def _recent(target: Target, now: datetime) -> Markup | None:
    ended = target.ended[:RECENT]
    if not ended:
        return None
    headers = ("Run", "State", "When", "Verdict", "Best rate /s", "Best TTFT p50 ms", "Took")
    return table("The newest runs.", headers, [_recent_row(run, now) for run in ended])


def _recent_row(run: Run, now: datetime) -> Markup:
    stages = _stages(run)
    rates = [stage.completed_per_s for stage in stages if stage.completed_per_s is not None]
    ttfts = [stage.ttft_p50_s for stage in stages if stage.ttft_p50_s is not None]
    took_s = words.run_time_s(run.job, now)
    cells: list[Child] = [
        state_chip(run.job),
        moment(run.job.created_at),
        chip(run.result.verdict) if run.result else "–",  # type: ignore[arg-type] # its word
        plain(max(rates, default=None)),
        ms(min(ttfts, default=None)),
        "–" if took_s is None else words.duration(took_s),
    ]
    return tag("tr", tag("th", _link(run), scope="row"), [tag("td", cell) for cell in cells])

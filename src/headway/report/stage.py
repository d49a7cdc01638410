"""One stage's numbers, made from its collected data."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import msgspec

from headway.core.clock import NS_PER_S
from headway.records.record import WorkerSample
from headway.report.columns import CANCELLED, COMPLETED, ERRORED, MISSING, Columns
from headway.report.curves import curve
from headway.report.floor import Floor
from headway.report.goodput import goodput, tpot_s
from headway.report.in_flight import InFlight
from headway.report.model import (
    ClientHealth,
    Counts,
    Curves,
    Rates,
    StageReport,
    Tokens,
    Verdict,
    WithFailures,
)
from headway.report.objectives import ObjectiveSpec
from headway.report.quantiles import (
    failures_as_infinite,
    percentile,
    summarise_durations,
    summarise_tokens,
)
from headway.report.series import build_series, tokens_between
from headway.report.stage_data import StageData
from headway.report.trend import trends
from headway.report.verdict import Facts, judge
from headway.report.window import MeasuredWindow, last_due_ns, measured_window

OPEN_LOOP_KINDS = frozenset({"constant", "poisson", "gamma", "ramp", "trace"})
CHANGING_KINDS = frozenset({"ramp", "trace"})
"""Profiles whose load is meant to change over a stage."""

PARTIAL_REASONS = frozenset({"interrupted", "worker_lost", "failed"})


@dataclass(frozen=True)
class RunContext:
    """What a stage must know of its run."""

    objectives: ObjectiveSpec
    floor: Floor | None
    unique_prompts: bool
    """The inputs were asked to share no prefix, so that a warm cache is a fault."""


def stage_report(data: StageData, context: RunContext) -> StageReport:
    """All numbers of a stage, and the verdict on them."""
    data.flush()
    return _StageNumbers(data, context).report()


def measured_part(data: StageData) -> tuple[MeasuredWindow, Columns]:
    """A flushed stage's window, and the requests that were due in it."""
    window = measured_window(data.started, data.ended, data.columns)
    last_due = last_due_ns(data.started, data.ended)
    end = window.end_ns if last_due is None else last_due
    return window, data.columns.only(window.start_ns <= due <= end for due in data.columns.due)


class _StageNumbers:
    """Derives a stage's report from its collected data."""

    def __init__(self, data: StageData, context: RunContext) -> None:
        self._data = data
        self._context = context
        self._window, self._offered = measured_part(data)
        self._completed = self._offered.completed()
        self._end_ns = data.ended.at_ns if data.ended else data.columns.latest_ns()
        self._in_flight = InFlight(data.columns, self._end_ns)
        self._profile = data.started.profile if data.started else {}

    def report(self) -> StageReport:
        data, done, offered = self._data, self._completed, self._offered
        ttft = _durations(done.sent, done.first_token)
        latency = _durations(done.sent, done.done)
        response = _durations(done.due, done.done)
        failed = len(offered) - len(done)
        stage = StageReport(
            **self._identity(),
            verdict=Verdict(word="VALID", words=[], checks=[]),
            window=self._window.published(),
            counts=self._counts(),
            rates=self._rates(),
            concurrency=self._in_flight.over(self._window),
            lateness=summarise_durations(_durations(offered.due, offered.sent)),
            ttft=summarise_durations(ttft),
            ttfo=summarise_durations(_durations(done.sent, done.first_content)),
            latency=summarise_durations(latency),
            response=summarise_durations(response),
            tpot=summarise_durations(_tpots(done)),
            chunk_gap=data.gaps.summary(),
            stall=summarise_durations(_known_durations(done.stall)),
            pool_wait=summarise_durations(sorted(data.pool_wait_s)),
            connect=summarise_durations(sorted(data.connect_s)),
            tls=summarise_durations(sorted(data.tls_s)),
            with_failures=WithFailures(
                # Without a single TTFT nothing streams, and there is nothing to fail at.
                ttft=failures_as_infinite(ttft, failed) if ttft else None,
                latency=failures_as_infinite(latency, failed),
                response=failures_as_infinite(response, failed),
            ),
            tokens=self._tokens(),
            goodput=goodput(offered, self._context.objectives, self._window),
            errors=data.failures.ranked(),
            client=_client_health(data.samples, self._window),
            trends=trends(done, self._in_flight, self._window),
            curves=Curves(ttft=curve(ttft), latency=curve(latency), response=curve(response)),
            series=build_series(data.columns, self._in_flight, data.samples, self._end_ns),
        )
        return msgspec.structs.replace(stage, verdict=judge(self._facts(stage)))

    def _identity(self) -> dict[str, Any]:
        started, ended = self._data.started, self._data.ended
        kind = str(self._profile.get("kind", "unknown"))
        return {
            "stage": self._data.stage,
            "name": started.name if started else f"stage {self._data.stage}",
            "profile": self._profile,
            "loop": "open" if kind in OPEN_LOOP_KINDS else "closed",
            "started_wall": started.started_wall if started else None,
            "workers": started.workers if started else None,
            "partial": ended is None or ended.reason in PARTIAL_REASONS,
            "ended_reason": ended.reason if ended else None,
            "ended_detail": ended.detail if ended else None,
        }

    def _counts(self) -> Counts:
        data, offered = self._data, self._offered
        status = Counter(offered.status)
        return Counts(
            offered=len(offered),
            completed=status[COMPLETED],
            errored=status[ERRORED],
            cancelled=status[CANCELLED],
            never_sent=sum(sent == MISSING for sent in offered.sent),
            outside_window=len(data.columns) - len(offered),
            recorded=len(data.columns) + data.duplicates,
            duplicates=data.duplicates,
            missing=max(0, data.ended.offered - data.first_turns) if data.ended else None,
            resent=data.resent,
            new_connections=data.reuse[False] if data.reuse else None,
        )

    def _rates(self) -> Rates:
        window, columns = self._window, self._data.columns
        completed = columns.completed()
        inside = completed.only(window.holds(done) for done in completed.done)
        errored = columns.only(status == ERRORED for status in columns.status)
        tokens = tokens_between(completed, [window.start_ns, window.end_ns])
        inputs = [count for count in inside.input_tokens if count != MISSING]
        return Rates(
            asked_per_s=_asked_rate(self._profile),
            offered_per_s=window.per_s(len(self._offered)),
            sent_per_s=window.per_s(sum(window.holds(sent) for sent in columns.sent)),
            completed_per_s=window.per_s(len(inside)),
            errored_per_s=window.per_s(sum(window.holds(done) for done in errored.done)),
            input_tokens_per_s=window.per_s(sum(inputs)) if inputs else None,
            output_tokens_per_s=window.per_s(tokens[0]) if tokens else None,
        )

    def _tokens(self) -> Tokens:
        done, data = self._completed, self._data
        return Tokens(
            input=summarise_tokens(count for count in done.input_tokens if count != MISSING),
            output=summarise_tokens(count for count in done.output_tokens if count != MISSING),
            output_sources=dict(data.sources),
            cached_share=(
                data.cached_tokens / data.cacheable_tokens if data.cacheable_tokens else None
            ),
        )

    def _facts(self, stage: StageReport) -> Facts:
        client, latency = stage.client, stage.latency
        return Facts(
            loop=stage.loop,
            completed=stage.counts.completed,
            errored=stage.counts.errored,
            workers_lost=len(self._data.deaths),
            missing=stage.counts.missing,
            cpu_share_max=client.cpu_share_max if client else None,
            loop_lag_p50_s=client.loop_lag_p50_s if client else None,
            floor=self._context.floor,
            ttft_p50_s=stage.ttft.p50_s if stage.ttft else None,
            latency_p50_s=latency.p50_s if latency else None,
            completed_per_s=stage.rates.completed_per_s,
            lateness_p99_s=self._lateness_p99_s(),
            trends=stage.trends,
            trend_expected=self._profile.get("kind") in CHANGING_KINDS,
            cached_share=stage.tokens.cached_share,
            unique_prompts=self._context.unique_prompts,
            trusted=latency.trusted if latency else (),
        )

    def _lateness_p99_s(self) -> float | None:
        """Of all offered requests; the second latest of fewer than 200.

        There the p99 is the latest or next to it, and one hiccup of the host is not a schedule.
        """
        if len(self._offered) < 2:
            return None
        rows = zip(self._offered.due, self._offered.sent, strict=True)
        late = [math.inf if sent == MISSING else (sent - due) / NS_PER_S for due, sent in rows]
        ordered = _ascending(late)
        return min(percentile(ordered, 990), ordered[-2])


def _ascending(values: list[float]) -> array[float]:
    # An array holds a million floats in 8 MB where a list takes 32.
    values.sort()
    return array("d", values)


def _durations(starts: Sequence[int], ends: Sequence[int]) -> array[float]:
    """Ascending seconds from start to end, of the rows that know both."""
    return _ascending(
        [
            (end - start) / NS_PER_S
            for start, end in zip(starts, ends, strict=True)
            if start != MISSING and end != MISSING
        ]
    )


def _known_durations(values: Iterable[int]) -> array[float]:
    return _ascending([value / NS_PER_S for value in values if value != MISSING])


def _tpots(done: Columns) -> array[float]:
    rows = zip(done.first_token, done.last_token, done.output_tokens, strict=True)
    return _ascending([value for row in rows if (value := tpot_s(*row)) is not None])


def _asked_rate(profile: dict[str, Any]) -> float | None:
    rate = profile.get("rate")
    if isinstance(rate, list | tuple):
        rate = rate[0] if len(rate) == 1 else None
    return float(rate) if isinstance(rate, int | float) else None


def _client_health(samples: Sequence[WorkerSample], window: MeasuredWindow) -> ClientHealth | None:
    inside = [sample for sample in samples if window.holds(sample.at_ns)] or list(samples)
    if not inside:
        return None
    cpu_s: Counter[int] = Counter()
    wall_s: Counter[int] = Counter()
    for sample in inside:
        cpu_s[sample.worker] += sample.cpu_s  # type: ignore[assignment] # Counter sums floats as well
        wall_s[sample.worker] += sample.wall_s  # type: ignore[assignment]
    shares = [cpu_s[worker] / wall_s[worker] for worker in wall_s if wall_s[worker] > 0]
    lags = sorted(sample.loop_lag_max_ns / NS_PER_S for sample in inside)
    return ClientHealth(
        samples=len(inside),
        cpu_share_max=max(shares, default=0.0),
        cpu_share_mean=fmean(shares) if shares else 0.0,
        loop_lag_p50_s=percentile(lags, 500),
        loop_lag_max_s=lags[-1],
        rss_max_bytes=max(sample.rss_bytes for sample in inside),
    )

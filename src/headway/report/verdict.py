"""The verdict: whether a stage's numbers can be trusted, with the evidence either way (N1).

A pure function of facts. Each limit stands here with its reason; `docs/metrics.md` and decision
record 0009 say the same to readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from headway.report.floor import Floor
from headway.report.model import INFINITY, Check, Trend, Verdict, VerdictWord

CAUSES: tuple[VerdictWord, ...] = (
    "WORKER_LOST",
    "ERRORS",
    "CLIENT_BOUND",
    "SCHEDULE_MISSED",
    "NOT_STEADY",
    "CACHE_WARM",
    "TOO_FEW_SAMPLES",
)
"""The order in which words are named: an earlier one tends to bring the later ones about. A lost
worker fails requests, failures change the load, a busy client sends late, lateness bends trends."""

MAX_ERROR_SHARE = 0.01
"""Above it the p99 that counts failures as infinite is infinite: the successes alone describe
another population than the one that was offered."""

MAX_CPU_SHARE = 0.8
"""A queue before one server waits ρ/(1−ρ) service times: 4 at 0.8, 9 at 0.9 (M/M/1). Beyond it
requests wait for the client, and the wait reads as the server's."""

TOLERATED_DELAY_S = 0.010
"""Timer and scheduler noise of an ordinary host stays below it; see TOLERATED_SHARE."""

TOLERATED_SHARE = 0.1
"""What the client adds may move the typical number by a tenth at most. A delay is therefore held
against the larger of 10 ms and a tenth of the median TTFT (latency, where nothing streams)."""

MAX_RATE_SHARE = 0.8
"""Of the client's highest rate, as calibrated; the reason is MAX_CPU_SHARE's."""

TREND_Z = 2.576
"""Chance passes it in 1 of 100 steady stages."""

MAX_CHANGE_SHARE = 0.2
"""A trend must also matter: a fifth between the first and the last third of the stage."""

MIN_IN_FLIGHT_CHANGE = 1.0
"""Requests. A fifth of less than five in flight is the arrivals' own noise."""

MAX_CACHED_SHARE = 0.1
"""Chat templates are a few tokens that all prompts share; a tenth of the input is more than that
and shortens TTFT by as much as TOLERATED_SHARE allows in all."""

MIN_COMPLETED = 100
"""Below it the p99 is the maximum, one request's luck."""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the verdict is made from. None: it was not measured."""

    loop: Literal["open", "closed"] = "closed"
    completed: int = 0
    errored: int = 0
    workers_lost: int = 0
    missing: int | None = None
    cpu_share_max: float | None = None
    loop_lag_p50_s: float | None = None
    floor: Floor | None = None
    ttft_p50_s: float | None = None
    latency_p50_s: float | None = None
    completed_per_s: float | None = None
    lateness_p99_s: float | None = None
    """Of all offered requests; infinite where more than 1 of 100 was never sent."""
    trends: Sequence[Trend] = ()
    trend_expected: bool = False
    """The load itself changes over the stage (ramp, trace)."""
    cached_share: float | None = None
    unique_prompts: bool = False
    trusted: Sequence[str] = ()
    """The percentiles of latency that the sample can bound."""

    @property
    def tolerated_delay_s(self) -> float:
        """The largest delay by the client that is not held against a stage."""
        typical_s = self.ttft_p50_s if self.ttft_p50_s is not None else self.latency_p50_s
        return max(TOLERATED_DELAY_S, TOLERATED_SHARE * (typical_s or 0.0))


def judge(facts: Facts) -> Verdict:
    """Put every question to a stage and say which words hold."""
    checks = [
        _worker_lost(facts),
        _errors(facts),
        *_client_bound(facts),
        *_schedule_missed(facts),
        *_not_steady(facts),
        _cache_warm(facts),
        _too_few_samples(facts),
    ]
    failed = {check.word for check in checks if check.failed}
    words = [word for word in CAUSES if word in failed]
    return Verdict(word=words[0] if words else "VALID", words=words, checks=checks)


def leading_findings(verdict: Verdict) -> list[Check]:
    """For each word that holds, the first failed check that says it."""
    first = {check.word: check for check in reversed(verdict.checks) if check.failed}
    return [first[word] for word in verdict.words]


def overall(words: Iterable[VerdictWord]) -> VerdictWord:
    """The run's word: VALID when all stages are, else the first in the order of causes."""
    present = set(words)
    return next((word for word in CAUSES if word in present), "VALID")


def _worker_lost(facts: Facts) -> Check:
    missing = facts.missing or 0
    if facts.workers_lost:
        text = f"{_count(facts.workers_lost, 'load worker')} died during the stage"
    elif missing:
        text = f"{_count(missing, 'arrival')} left no record behind"
    else:
        text = "every load worker lived, and every arrival has its record"
    value = max(facts.workers_lost, missing)
    return _over("WORKER_LOST", "workers or records lost", value, 0, text)


def _errors(facts: Facts) -> Check:
    total = facts.completed + facts.errored
    if not total:
        return _unmeasured("ERRORS", "error share", MAX_ERROR_SHARE, "no request ended")
    share = facts.errored / total
    text = f"{facts.errored} of {total} requests failed ({share:.2%}; limit {MAX_ERROR_SHARE:.0%})"
    return _over("ERRORS", "error share", share, MAX_ERROR_SHARE, text)


def _client_bound(facts: Facts) -> list[Check]:
    return [_cpu(facts), _loop_lag(facts), _floor_share(facts), _rate_share(facts)]


def _cpu(facts: Facts) -> Check:
    measure = "CPU share of the busiest worker"
    share = facts.cpu_share_max
    if share is None:
        return _unmeasured(
            "CLIENT_BOUND", measure, MAX_CPU_SHARE, "no worker reported its CPU time"
        )
    text = f"the busiest load worker used {share:.0%} of a core (limit {MAX_CPU_SHARE:.0%})"
    return _over("CLIENT_BOUND", measure, share, MAX_CPU_SHARE, text)


def _loop_lag(facts: Facts) -> Check:
    # The median of each second's worst delay: one that is passed in most seconds touches at least
    # 1% of the time, which is what a p99 reads. A single hiccup does not spoil a stage.
    measure, limit = "median of the worst event-loop delays in seconds", facts.tolerated_delay_s
    lag = facts.loop_lag_p50_s
    if lag is None:
        return _unmeasured(
            "CLIENT_BOUND", measure, limit, "no worker reported its event loop's lag"
        )
    text = (
        f"in a typical second a worker's event loop stood still for {_ms(lag)} at worst "
        f"(limit {_ms(limit)})"
    )
    return _over("CLIENT_BOUND", measure, lag, limit, text)


def _floor_share(facts: Facts) -> Check:
    measure = "client's floor as a share of the median"
    floor = facts.floor
    pairs = (
        ("TTFT", floor.ttft_p50_s if floor else None, facts.ttft_p50_s),
        ("latency", floor.latency_p50_s if floor else None, facts.latency_p50_s),
    )
    for name, own_s, measured_s in pairs:
        if own_s is not None and measured_s:
            share = own_s / measured_s
            text = (
                f"against a null server the client itself takes {_ms(own_s)} of {name}, "
                f"{share:.1%} of the {_ms(measured_s)} measured (limit {TOLERATED_SHARE:.0%})"
            )
            return _over("CLIENT_BOUND", measure, share, TOLERATED_SHARE, text)
    return _unmeasured("CLIENT_BOUND", measure, TOLERATED_SHARE, "the client was not calibrated")


def _rate_share(facts: Facts) -> Check:
    measure = "request rate as a share of the client's highest"
    highest = facts.floor.max_requests_per_s if facts.floor else None
    if not highest or facts.completed_per_s is None:
        text = "the client's highest rate was not calibrated"
        return _unmeasured("CLIENT_BOUND", measure, MAX_RATE_SHARE, text)
    share = facts.completed_per_s / highest
    text = (
        f"{facts.completed_per_s:.1f} requests/s are {share:.0%} of the {highest:.0f} that the "
        f"client reaches against a null server (limit {MAX_RATE_SHARE:.0%})"
    )
    return _over("CLIENT_BOUND", measure, share, MAX_RATE_SHARE, text)


def _schedule_missed(facts: Facts) -> list[Check]:
    if facts.loop == "closed":
        return []
    measure, limit = "lateness p99 in seconds", facts.tolerated_delay_s
    lateness = facts.lateness_p99_s
    if lateness is None:
        return [_unmeasured("SCHEDULE_MISSED", measure, limit, "too few requests were offered")]
    if lateness == float("inf"):
        text = f"more than 1% of the offered requests were never sent (limit {_ms(limit)} late)"
    else:
        text = f"1% of the requests were sent {_ms(lateness)} late or later (limit {_ms(limit)})"
    return [_over("SCHEDULE_MISSED", measure, lateness, limit, text)]


_TREND_NAMES = {
    "ttft_s": "median TTFT",
    "response_s": "median response time",
    "in_flight": "mean requests in flight",
}


def _not_steady(facts: Facts) -> list[Check]:
    if facts.trend_expected:
        return []
    if not facts.trends:
        text = "too few requests for a trend test (5 in each tenth of the stage)"
        return [_unmeasured("NOT_STEADY", "change over the stage", MAX_CHANGE_SHARE, text)]
    return [_trend(trend) for trend in facts.trends]


def _trend(trend: Trend) -> Check:
    name = _TREND_NAMES[trend.measure]
    significant = abs(trend.z) > TREND_Z
    moved = "rose" if trend.change_share > 0 else "fell"
    matters = abs(trend.change_share) > MAX_CHANGE_SHARE
    if trend.measure == "in_flight":
        matters = matters and abs(trend.last - trend.first) >= MIN_IN_FLIGHT_CHANGE
    chance = "which chance does not explain" if significant else "which chance can explain"
    text = (
        f"{name} {moved} by {abs(trend.change_share):.0%} from the stage's first third to its last "
        f"(limit {MAX_CHANGE_SHARE:.0%}), {chance} (z {trend.z:+.1f}, limit ±{TREND_Z:.2f})"
    )
    return Check(
        word="NOT_STEADY",
        measure=f"change of {name}",
        value=trend.change_share,
        limit=MAX_CHANGE_SHARE,
        failed=significant and matters,
        text=text,
    )


def _cache_warm(facts: Facts) -> Check:
    measure, share = "cached share of the input tokens", facts.cached_share
    if share is None:
        text = "the target does not say how many input tokens it had cached"
        return _unmeasured("CACHE_WARM", measure, MAX_CACHED_SHARE, text)
    text = f"the target had {share:.1%} of the input tokens cached"
    if not facts.unique_prompts:
        text += "; the inputs were not asked to be unique, so this is theirs"
    else:
        text += f" although every prompt was to be new (limit {MAX_CACHED_SHARE:.0%})"
        if share > MAX_CACHED_SHARE:
            text += "; give another --seed, or restart the target"
    check = _over("CACHE_WARM", measure, share, MAX_CACHED_SHARE, text)
    return check if facts.unique_prompts else msgspec.structs.replace(check, failed=False)


def _too_few_samples(facts: Facts) -> Check:
    trusted = ", ".join(_percentile_label(name) for name in facts.trusted) or "none"
    text = f"{_count(facts.completed, 'request')} completed"
    if facts.completed < MIN_COMPLETED:
        text += f"; below {MIN_COMPLETED} the p99 is only the slowest of them"
    text += f"; percentiles that this sample can bound: {trusted}"
    return Check(
        word="TOO_FEW_SAMPLES",
        measure="completed requests",
        value=float(facts.completed),
        limit=float(MIN_COMPLETED),
        failed=facts.completed < MIN_COMPLETED,
        text=text,
    )


def _over(word: VerdictWord, measure: str, value: float, limit: float, text: str) -> Check:
    published = INFINITY if value == float("inf") else float(value)
    return Check(
        word=word,
        measure=measure,
        value=published,
        limit=float(limit),
        failed=value > limit,
        text=text,
    )


def _unmeasured(word: VerdictWord, measure: str, limit: float, text: str) -> Check:
    return Check(word=word, measure=measure, value=None, limit=limit, failed=False, text=text)


def _percentile_label(name: str) -> str:
    return "p99.9" if name == "p999" else name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"

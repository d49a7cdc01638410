"""Conditions on a stage's numbers, as people write them: `ttft p99 < 500ms; goodput > 20/s`.

A gate asks them of a run, a search of each rate that it tries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from headway.core.errors import ConfigError
from headway.report.model import StageReport
from headway.report.objectives import ObjectiveSpec

_FORM = re.compile(
    r"^\s*(?P<measure>[a-z][a-z -]*?)(?:\s+(?P<point>p\d+(?:\.\d+)?|mean|max))?\s*"
    r"(?P<sign><=?|>=?)\s*(?P<limit>\d+(?:\.\d+)?|\.\d+)\s*(?P<unit>%|/s|us|ms|s|min|m|h|)\s*$",
    re.IGNORECASE,
)
_POINTS = {
    "p50": "p50_s", "p75": "p75_s", "p90": "p90_s", "p95": "p95_s", "p99": "p99_s",
    "p99.9": "p999_s", "mean": "mean_s", "max": "max_s",
}  # fmt: skip
_DURATIONS = ("ttft", "ttfo", "tpot", "latency", "response", "lateness", "stall")
_WITH_FAILURES = ("ttft", "latency", "response")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_EXAMPLE = "write for example 'ttft p99 < 500ms; goodput > 20/s; error rate < 1%'"

Unit = Literal["s", "/s", "share"]
Read = Callable[[StageReport], float | None]


def _goodput(stage: StageReport, field: str) -> float | None:
    return None if stage.goodput is None else getattr(stage.goodput, field)


def error_share(stage: StageReport) -> float | None:
    """Failed requests over those that ended by themselves; None when none did."""
    ended = stage.counts.completed + stage.counts.errored
    return stage.counts.errored / ended if ended else None


_NUMBERS: dict[tuple[str, Unit], Read] = {
    ("goodput", "/s"): lambda stage: _goodput(stage, "good_per_s"),
    ("goodput", "share"): lambda stage: _goodput(stage, "good_share"),
    ("error rate", "share"): error_share,
    ("requests", "/s"): lambda stage: stage.rates.completed_per_s,
    ("tokens", "/s"): lambda stage: stage.rates.output_tokens_per_s,
}


@dataclass(frozen=True)
class Condition:
    """One condition on one number of a stage.

    Attributes:
        text: As it was written.
        measure: What is looked at.
        unit: Of the limit: seconds, per second, or a share of 1.
        is_upper: Whether the number must stay below the limit, or above it.
        is_strict: Whether the limit itself does not meet it.
    """

    text: str
    measure: str
    point: str | None
    unit: Unit
    limit: float
    is_upper: bool
    is_strict: bool

    def read(self, stage: StageReport) -> float | None:
        """The number; None: it was not measured.

        A percentile counts each request that failed as infinite: what was never answered did not
        arrive in time.
        """
        if self.point is None:
            return _NUMBERS[self.measure, self.unit](stage)
        summary = getattr(stage, self.measure)
        if self.measure in _WITH_FAILURES and self.point in _PERCENTILES:
            summary = getattr(stage.with_failures, self.measure) or summary
        return None if summary is None else float(getattr(summary, self.point))

    def is_met_by(self, value: float | None) -> bool:
        """Whether a number meets it; one that was not measured does not."""
        if value is None or math.isnan(value):
            return False
        if value == self.limit:
            return not self.is_strict
        return (value < self.limit) == self.is_upper

    def shown(self, value: float | None) -> str:
        """The number in words, with its unit."""
        if value is None:
            hint = "; `headway bench --objective` says what a good request is"
            return "not measured" + (hint if self.measure == "goodput" else "")
        if math.isinf(value):
            return "infinite: more requests failed than this percentile leaves out"
        if self.unit == "s":
            return f"{value * 1000:.2f} ms" if value < 1 else f"{value:.3f} s"
        return f"{value:.2%}" if self.unit == "share" else f"{value:.2f}/s"

    @property
    def tail_share(self) -> float:
        """The share of requests beyond the percentile; 1 for what is no percentile."""
        return _TAILS.get(self.point or "", 1.0)


_TAILS = {
    field: 1 - float(point.removeprefix("p")) / 100
    for point, field in _POINTS.items()
    if point.startswith("p")
}
_PERCENTILES = frozenset(_POINTS.values()) - {"mean_s", "max_s"}


def parse_conditions(text: str) -> list[Condition]:
    """Read conditions separated by `;`, by `,` or by new lines.

    Raises:
        ConfigError: one cannot be understood; the text names it.
    """
    items = [item for item in re.split(r"[;,\n]", text) if item.strip()]
    return [_parse(item.strip()) for item in items]


def objectives_from(conditions: Iterable[Condition]) -> ObjectiveSpec:
    """What a single request must meet to be counted as good, where a whole stage must meet these.

    A limit on a percentile, a mean or a maximum becomes the limit of each request; of several for
    one measure the highest: a request above the lower one alone is still within what was asked.
    """
    limits: dict[str, float] = {}
    for one in conditions:
        field = f"{one.measure}_s"
        if one.is_upper and field in ObjectiveSpec.model_fields:
            limits[field] = max(one.limit, limits.get(field, 0.0))
    return ObjectiveSpec(**limits)


def _parse(item: str) -> Condition:
    match = _FORM.match(item)
    if match is None:
        raise ConfigError(f"{item!r} is not an objective; {_EXAMPLE}")
    measure = match["measure"].lower().replace("-", " ")
    point, sign = match["point"], match["sign"]
    limit, unit = _limit(item, float(match["limit"]), match["unit"].lower())
    _check(item, measure, point, unit)
    return Condition(
        text=item,
        measure=measure,
        point=_POINTS[point.lower()] if point else None,
        unit=unit,
        limit=limit,
        is_upper=sign.startswith("<"),
        is_strict=len(sign) == 1,
    )


def _limit(item: str, limit: float, unit: str) -> tuple[float, Unit]:
    if unit == "%":
        return limit / 100, "share"
    if unit == "/s":
        return limit, "/s"
    if unit in _SECONDS:
        return limit * _SECONDS[unit], "s"
    raise ConfigError(f"{item!r} has no unit (ms, s, /s, %); {_EXAMPLE}")


def _check(item: str, measure: str, point: str | None, unit: Unit) -> None:
    if measure in _DURATIONS:
        if point is None or point.lower() not in _POINTS:
            raise ConfigError(f"{item!r} must name one of {', '.join(_POINTS)}; {_EXAMPLE}")
        if unit != "s":
            raise ConfigError(f"{item!r} needs a duration, for example 500ms")
    elif point is not None or (measure, unit) not in _NUMBERS:
        known = [*_DURATIONS, *(f"{name} ({_unit(unit)})" for name, unit in _NUMBERS)]
        raise ConfigError(f"{item!r} names nothing that is measured; there are {', '.join(known)}")


def _unit(unit: Unit) -> str:
    return "%" if unit == "share" else unit

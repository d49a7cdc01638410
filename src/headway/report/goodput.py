"""Goodput: requests that met every objective, against all that were offered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headway.core.clock import NS_PER_S
from headway.report.columns import COMPLETED, MISSING, Columns
from headway.report.model import Goodput, ObjectiveResult
from headway.report.objectives import ObjectiveSpec
from headway.report.window import MeasuredWindow


@dataclass
class _Tally:
    name: str
    limit_s: float
    met: int = 0
    missed: int = 0
    undefined: int = 0

    def judge(self, value_s: float | None) -> bool:
        """Count one completed request; an undefined value is not good (trap 45)."""
        if value_s is None:
            self.undefined += 1
            return False
        if value_s > self.limit_s:
            self.missed += 1
            return False
        self.met += 1
        return True


def goodput(offered: Columns, objectives: ObjectiveSpec, window: MeasuredWindow) -> Goodput | None:
    """Judge every request that was due in the window.

    TTFT and latency are judged as the user saw them, from the due time: a request that the schedule
    or a cap made late does not become good by being quick once it is sent.

    Args:
        offered: The requests due in the window, whatever became of them.
        objectives: What was asked.
        window: For the rate.

    Returns:
        None when no objective was set.
    """
    limits = objectives.model_dump(exclude_none=True)
    if not limits:
        return None
    tallies = [_Tally(name, limit) for name, limit in limits.items()]
    good = sum(_is_good(values, tallies) for values in _values(offered, list(limits)))
    results = [
        ObjectiveResult(
            name=tally.name,  # type: ignore[arg-type] # the fields of ObjectiveSpec are the names
            limit_s=tally.limit_s,
            met=tally.met,
            missed=tally.missed + len(offered) - tally.met - tally.missed - tally.undefined,
            undefined=tally.undefined,
        )
        for tally in tallies
    ]
    return Goodput(
        good=good,
        offered=len(offered),
        good_share=good / len(offered) if len(offered) else None,
        good_per_s=window.per_s(good),
        objectives=results,
    )


def good_dues_ns(offered: Columns, objectives: ObjectiveSpec) -> list[int]:
    """When the good ones among the offered requests were due."""
    tallies = [
        _Tally(name, limit) for name, limit in objectives.model_dump(exclude_none=True).items()
    ]
    values = _values(offered, [tally.name for tally in tallies])
    completed = offered.completed().due
    return [due for due, known in zip(completed, values, strict=True) if _is_good(known, tallies)]


def _is_good(values: dict[str, float | None], tallies: list[_Tally]) -> bool:
    verdicts = [tally.judge(values[tally.name]) for tally in tallies]
    return all(verdicts)


def _values(offered: Columns, names: list[str]) -> Iterator[dict[str, float | None]]:
    rows = zip(
        offered.status,
        offered.due,
        offered.first_token,
        offered.last_token,
        offered.done,
        offered.output_tokens,
        strict=True,
    )
    for status, due, first, last, done, tokens in rows:
        if status == COMPLETED:
            response = _seconds(due, done)
            known = {
                "ttft_s": _seconds(due, first),
                "tpot_s": tpot_s(first, last, tokens),
                "latency_s": response,
                "response_s": response,
            }
            yield {name: known[name] for name in names}


def tpot_s(first_token_ns: int, last_token_ns: int, output_tokens: int) -> float | None:
    """(last token − first token) / (output tokens − 1); None below two tokens (trap 45)."""
    if output_tokens < 2 or MISSING in (first_token_ns, last_token_ns):
        return None
    return (last_token_ns - first_token_ns) / (output_tokens - 1) / NS_PER_S


def _seconds(start_ns: int, end_ns: int) -> float | None:
    return None if end_ns == MISSING else (end_ns - start_ns) / NS_PER_S

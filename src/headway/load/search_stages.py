"""The stages of a search: from what earlier stages showed to the next one, and to the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from headway.load.results import StageResult
from headway.load.search import Answer, Bounds, Observation, RateSearch, Seen, Why
from headway.load.spec import (
    ConstantProfile,
    PoissonProfile,
    SaturationLimit,
    SearchProfile,
)
from headway.load.stages import StageLimits, StagePlan, closed_stage, rate_stage
from headway.records.record import Note
from headway.report.conditions import Condition, parse_conditions
from headway.report.model import StageReport
from headway.report.search import TOPIC
from headway.report.verdict import MAX_RATE_SHARE, MIN_COMPLETED

_BELOW_SYNCHRONOUS = 0.1
"""The lowest rate that is tried, as a share of what one request after another achieves: a target
that meets its objectives at no tenth of that is not asked for ever smaller rates."""
_ABOVE_SATURATION = 1.5
"""The highest rate, as a multiple of what the saturated target completed: the closed loop of that
stage may not have filled it, and objectives are met beyond it by luck at most."""
_MOST_LENGTHENED = 4
"""A stage at a low rate may take so many times its length to have requests enough."""
_MARGIN = 1.2
"""Requests asked for over those needed: two standard deviations of a Poisson count of 100."""
_SPOILED = frozenset({"CLIENT_BOUND", "SCHEDULE_MISSED", "WORKER_LOST"})
_SATURATION_SHARE = 1 / 3
"""Of a stage's length: the window in which saturation is looked for, 10 s at most."""

ReadStage = Callable[[int], StageReport]
"""Gives the numbers of a stage that has ended."""


class Judgement(msgspec.Struct, frozen=True):
    """What a stage says about the objectives at its rate, and why, in words."""

    seen: Seen
    why: str


class SearchStages:
    """Plans the stages of one search. All that it decides follows from the results.

    Args:
        profile: What was asked.
        limits: What ends a stage.
        max_seconds: How long a stage takes when nothing else says so; None: no such limit.
        read_stage: Reads the numbers of a stage.
        client_limit_per_s: The client's own highest rate, as calibrated; None: not known.
    """

    def __init__(
        self,
        profile: SearchProfile,
        limits: StageLimits,
        read_stage: ReadStage,
        client_limit_per_s: float | None,
    ) -> None:
        self._profile = profile
        self._limits = limits
        self._conditions = parse_conditions(profile.slo)
        self._read_stage = read_stage
        self._client_limit_per_s = client_limit_per_s
        self._judgements: dict[int, Judgement] = {}

    def next_stage(self, results: Sequence[StageResult]) -> StagePlan | None:
        """The stage that the search needs next; None: it is over."""
        profile = self._profile
        if profile.low_rate is None and _first(results, "synchronous") is None:
            return self._limits.apply(closed_stage("synchronous", {"kind": "synchronous"}, 1))
        if profile.high_rate is None and _first(results, "throughput") is None:
            cap = profile.saturation_streams
            return self._limits.apply(
                closed_stage("saturation", {"kind": "throughput", "cap": cap}, cap)
            )
        search = self._search(results)
        rate = None if search is None else search.next_rate_per_s()
        return None if rate is None else self._probe(rate)

    def note(self, results: Sequence[StageResult]) -> Note:
        """The answer, for the run's readers; of a search that was cut short, what it knows."""
        search = self._search(results)
        probes = [result for result in results if _is_probe(result)]
        if search is None:
            return Note(topic=TOPIC, text="The search has no answer: nothing was completed.")
        answer = search.answer()
        data = {
            "objectives": [condition.text for condition in self._conditions],
            "answer": msgspec.to_builtins(answer),
            "stages": [
                {
                    "stage": result.stage,
                    "rate_per_s": float(result.profile["rate"]),
                    **msgspec.to_builtins(self._judge(result)),
                }
                for result in probes
            ],
        }
        return Note(topic=TOPIC, text=self._sentence(answer, probes), data=data)

    # --- planning ------------------------------------------------------------------------------

    def _search(self, results: Sequence[StageResult]) -> RateSearch | None:
        bounds = self._bounds(results)
        if bounds is None:
            return None
        profile = self._profile
        search = RateSearch(bounds, profile.precision, profile.confidence, profile.max_stages)
        search.observe(
            Observation(float(result.profile["rate"]), self._judge(result).seen)
            for result in results
            if _is_probe(result)
        )
        return search

    def _bounds(self, results: Sequence[StageResult]) -> Bounds | None:
        low, high = self._profile.low_rate, self._profile.high_rate
        high_is: Why = "asked"
        if low is None:
            alone = _first(results, "synchronous")
            low = alone.achieved_per_s * _BELOW_SYNCHRONOUS if alone else 0.0
        if high is None:
            saturated = _first(results, "throughput")
            high = saturated.achieved_per_s * _ABOVE_SATURATION if saturated else 0.0
            high_is = "saturation"
        if self._client_limit_per_s is not None:
            most = self._client_limit_per_s * MAX_RATE_SHARE
            if most < high:
                high, high_is = most, "client"
        if low <= 0 or high <= 0:
            return None  # Nothing succeeded: there is no range to search.
        return Bounds(min(low, high), high, high_is)

    def _probe(self, rate: float) -> StagePlan:
        profile: ConstantProfile | PoissonProfile
        if self._profile.arrivals == "constant":
            profile = ConstantProfile(rate=(rate,))
        else:
            profile = PoissonProfile(rate=(rate,))
        plan = self._limits.apply(rate_stage(profile, rate))
        if plan.max_seconds is None:
            return plan
        seconds = _lengthened(plan.max_seconds, rate, self._conditions)
        window_s = max(1.0, min(SaturationLimit().window_s, seconds * _SATURATION_SHARE))
        return msgspec.structs.replace(
            plan,
            max_seconds=seconds,
            saturation=plan.saturation or SaturationLimit(window_s=window_s),
        )

    def _judge(self, result: StageResult) -> Judgement:
        if result.stage not in self._judgements:
            self._judgements[result.stage] = judge(
                self._read_stage(result.stage), result.reason, result.detail, self._conditions
            )
        return self._judgements[result.stage]

    # --- words ---------------------------------------------------------------------------------

    def _sentence(self, answer: Answer, probes: Sequence[StageResult]) -> str:
        asked = " and ".join(condition.text for condition in self._conditions)
        if answer.rate_per_s is None:
            text = f"No rate was found that meets {asked}"
        else:
            text = (
                f"{answer.rate_per_s:g}/s is the highest rate found that meets {asked}: "
                f"{answer.met} of {answer.stages} stages there met it (confidence "
                f"{answer.confidence:.1%} that such a stage meets it more often than not)"
            )
        return f"{text}; {self._limit_text(answer, probes)}" + (
            "" if answer.settled else "; the search ended before this was settled"
        )

    def _limit_text(self, answer: Answer, probes: Sequence[StageResult]) -> str:
        if answer.next_per_s is not None:
            reason = next(
                (
                    self._judge(result).why
                    for result in reversed(probes)
                    if float(result.profile["rate"]) == answer.next_per_s
                    and self._judge(result).seen != "met"
                ),
                "",
            )
            if answer.next_is == "client":
                return f"at {answer.next_per_s:g}/s the client itself was the limit ({reason})"
            missed = f"{answer.next_missed} of {answer.next_stages} stages missed it"
            return f"at {answer.next_per_s:g}/s {missed} ({reason})"
        return {
            "asked": "a higher rate was not to be tried",
            "client": "a higher rate is more than this client can send and measure",
            "saturation": "a higher rate was not tried, since the saturated target completed less",
            "missed": "nothing higher was tried",
        }[answer.next_is]


def judge(
    stage: StageReport, reason: str, detail: str | None, conditions: Sequence[Condition]
) -> Judgement:
    """Say whether a stage met the objectives, or that the client spoiled it.

    A stage in which waits still grow has not met them, whatever its percentiles say: a longer one
    would have more.

    Args:
        stage: Its numbers.
        reason: Why it ended, as in `records.StageEnded.reason`.
        detail: The same in words.
        conditions: The objectives; a percentile counts a failed request as infinite.
    """
    failed = [check for check in stage.verdict.checks if check.failed]
    spoiled = next((check for check in failed if check.word in _SPOILED), None)
    if spoiled is not None:
        return Judgement("unusable", f"{spoiled.word}: {spoiled.text}")
    if reason == "saturated":
        return Judgement("missed", f"saturated: {detail}")
    for condition in conditions:
        value = condition.read(stage)
        if not condition.is_met_by(value):
            return Judgement("missed", f"{condition.text}: {condition.shown(value)}")
    errors_are_judged = any(condition.measure == "error rate" for condition in conditions)
    for check in failed:
        rises = check.word == "NOT_STEADY" and isinstance(check.value, float) and check.value > 0
        if rises or (check.word == "ERRORS" and not errors_are_judged):
            return Judgement("missed", f"{check.word}: {check.text}")
    return Judgement("met", "every objective was met")


def _lengthened(seconds: float, rate: float, conditions: Sequence[Condition]) -> float:
    """Long enough for the verdict, and for a request beyond the highest percentile."""
    share = min((condition.tail_share for condition in conditions), default=1.0)
    needed_s: float = _MARGIN * max(MIN_COMPLETED, 1 / share) / rate
    longest_s: float = seconds * _MOST_LENGTHENED
    return min(max(seconds, needed_s), longest_s)


def _first(results: Sequence[StageResult], kind: str) -> StageResult | None:
    return next((result for result in results if result.profile.get("kind") == kind), None)


def _is_probe(result: StageResult) -> bool:
    return result.profile.get("kind") in ("constant", "poisson")

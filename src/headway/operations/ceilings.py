"""What a registered target bears: the ceilings that its administrator set, held against a profile.

Asked twice: of what the profile says, when the run is submitted; and of each stage before it
begins, for rates that are only known then (a trace's, a sweep's, a search's).
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from headway.core.clock import NS_PER_S
from headway.core.errors import ConfigError
from headway.jobs.target import TargetGrant
from headway.load.arrivals import TraceArrivals
from headway.load.spec import (
    ConcurrentProfile,
    ConstantProfile,
    GammaProfile,
    PoissonProfile,
    RampProfile,
    RunSpec,
    SearchProfile,
    StagesProfile,
    SweepProfile,
    SynchronousProfile,
    ThroughputProfile,
    TraceProfile,
)
from headway.load.stages import StagePlan

_TOLERANCE = 1.001
"""A rate is a decimal fraction: one that was typed like its ceiling is not over it."""


def check_ceilings(spec: RunSpec, target: TargetGrant) -> None:
    """Refuse a profile that asks for more than its target bears.

    Raises:
        ConfigError: with both numbers.
    """
    profile = spec.profile
    profiles = (
        [stage.profile for stage in profile.stages]
        if isinstance(profile, StagesProfile)
        else [profile]
    )
    for each in profiles:
        for refusal in _refusals(each, target):
            raise ConfigError(f"target {target.name!r}: {refusal}")


class Ceilings:
    """Bounds the stages of one run.

    Args:
        target: As it is registered when the run starts.
    """

    def __init__(self, target: TargetGrant) -> None:
        self._target = target

    def __call__(self, plan: StagePlan) -> StagePlan:
        """The stage with no more in flight than the target bears.

        Raises:
            ConfigError: it would send faster than the target bears.
        """
        target = self._target
        rate = _rate_of(plan)
        if rate is not None and _is_over(rate, target.max_rate_per_s):
            raise ConfigError(
                f"target {target.name!r}: stage {plan.name} asks for {rate:g} requests/s, more "
                f"than the {target.max_rate_per_s:g} that are allowed"
            )
        if target.max_streams is None or (plan.streams or target.max_streams + 1) <= (
            target.max_streams
        ):
            return plan
        return msgspec.structs.replace(plan, streams=target.max_streams)


def _refusals(profile: object, target: TargetGrant) -> Iterator[str]:
    most_per_s, most_streams = target.max_rate_per_s, target.max_streams
    for rate in _rates(profile):
        if _is_over(rate, most_per_s):
            yield f"{rate:g} requests/s are asked for, {most_per_s:g} are allowed"
    for streams in _streams(profile):
        if most_streams is not None and (streams is None or streams > most_streams):
            asked = "no limit of streams is" if streams is None else f"{streams} streams are"
            yield f"{asked} asked for, {most_streams} are allowed; give --cap {most_streams}"
    if most_per_s is None:
        return
    if isinstance(profile, SweepProfile):
        yield f"a sweep finds its own rates, {most_per_s:g}/s are allowed; give --rate"
    if isinstance(profile, SearchProfile) and profile.high_rate is None:
        yield f"a search needs its highest rate here, {most_per_s:g}/s are allowed"
    if most_streams is None and isinstance(
        profile, ConcurrentProfile | ThroughputProfile | SearchProfile
    ):
        yield f"a closed loop keeps no rate, {most_per_s:g}/s are allowed; give --rate"


def _rates(profile: object) -> tuple[float, ...]:
    match profile:
        case ConstantProfile() | PoissonProfile() | GammaProfile():
            return profile.rate
        case RampProfile(rate_from=first, rate_to=last):
            return (first, last)
        case SearchProfile(low_rate=low, high_rate=high):
            return tuple(rate for rate in (low, high) if rate is not None)
    return ()


def _streams(profile: object) -> tuple[int | None, ...]:
    """Most requests in flight of each stage; None: without a limit."""
    match profile:
        case ConcurrentProfile(streams=streams):
            return streams
        case SynchronousProfile():
            return (1,)
        case SweepProfile() | SearchProfile():
            return (profile.saturation_streams,)
        case (
            ThroughputProfile()
            | ConstantProfile()
            | PoissonProfile()
            | GammaProfile()
            | RampProfile()
            | TraceProfile()
        ):
            return (profile.cap,)
    return (None,)


def _rate_of(plan: StagePlan) -> float | None:
    """The highest rate of a stage, as far as it has one."""
    if isinstance(plan.arrivals, TraceArrivals):
        # A recording draws nothing at random.
        return _busiest_second(list(plan.arrivals.offsets_ns(random.Random())))
    return plan.asked_rate_per_s


def _busiest_second(due_ns: list[int]) -> float:
    """Most arrivals in any second that begins with one."""
    return float(
        max(
            (bisect_left(due_ns, at + NS_PER_S, index) - index for index, at in enumerate(due_ns)),
            default=0,
        )
    )


def _is_over(rate: float, most_per_s: float | None) -> bool:
    return most_per_s is not None and rate > most_per_s * _TOLERANCE

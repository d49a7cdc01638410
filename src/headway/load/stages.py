"""From a load profile to the stages of a run.

Most profiles are a list that is known beforehand. A sweep is decided as it goes: its rates lie
between what the synchronous and the saturated stage achieved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from headway.core.errors import ConfigError, InternalError
from headway.core.plugins import make_plugin
from headway.load.arrivals import (
    ArrivalProcess,
    ConstantArrivals,
    GammaArrivals,
    PoissonArrivals,
    RampArrivals,
    TraceArrivals,
)
from headway.load.results import StageResult
from headway.load.spec import (
    ConcurrentProfile,
    ConstantProfile,
    GammaProfile,
    PluginProfile,
    PoissonProfile,
    RampProfile,
    RunSpec,
    SaturationLimit,
    SearchProfile,
    SingleProfile,
    StagesProfile,
    SweepProfile,
    SynchronousProfile,
    ThroughputProfile,
    TraceProfile,
)

DEFAULT_STAGE_S = 30.0
"""Length of a stage for which nothing else says when it ends."""


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One stage, with single values."""

    name: str
    profile: dict[str, Any]
    streams: int | None
    """Most requests in flight; None: no cap."""
    arrivals: ArrivalProcess | None
    """None: closed loop, where completions release sends."""
    max_arrivals: int | None
    max_seconds: float | None
    asked_rate_per_s: float | None = None
    natural_end: str = "max_requests"
    """Why the stage is over when `max_arrivals` were handed out."""
    saturation: SaturationLimit | None = None
    """When an open loop's target has fallen behind; None: nobody asks."""
    step: int | None = None
    """As in `records.StageStarted.step`."""


Planner = Callable[[Sequence[StageResult]], StagePlan | None]
"""Gives the next stage from the results so far; None: no more."""


def plan_stages(
    spec: RunSpec, conversations: int | None, trace_ns: Sequence[int] | None
) -> Iterator[Planner]:
    """The stages of a run, each as a planner that is called when its turn has come.

    Args:
        spec: What was asked.
        conversations: How many the inputs have; None: endless.
        trace_ns: Recorded offsets, for trace profiles.
    """
    bounds = StageLimits(spec, conversations)
    profile = spec.profile
    if isinstance(profile, SearchProfile):
        raise InternalError("the stages of a search are planned by SearchStages")
    if isinstance(profile, SweepProfile):
        yield from _sweep(profile, bounds)
    elif isinstance(profile, StagesProfile):
        for stage in profile.stages:
            for plan in _plans(stage.profile, bounds, trace_ns):
                own = bounds.of_stage(stage.max_requests, stage.max_seconds)
                named = msgspec.structs.replace(plan, name=stage.name or plan.name)
                yield _fixed(own.apply(named))
    else:
        for plan in _plans(profile, bounds, trace_ns):
            yield _fixed(bounds.apply(plan))


def count_stages(spec: RunSpec) -> int:
    """How many stages a run has at most; all but a search have each of them."""
    profile = spec.profile
    if isinstance(profile, SweepProfile):
        return profile.steps + 2
    if isinstance(profile, SearchProfile):
        return profile.max_stages + 2
    if isinstance(profile, StagesProfile):
        return sum(_count(stage.profile) for stage in profile.stages)
    return _count(profile)


def count_needed(spec: RunSpec) -> int:
    """How many of the first stages the others are planned from."""
    return 2 if isinstance(spec.profile, SweepProfile) else 0


def _count(profile: SingleProfile) -> int:
    if isinstance(profile, ConcurrentProfile):
        return len(profile.streams)
    if isinstance(profile, ConstantProfile | PoissonProfile | GammaProfile):
        return len(profile.rate)
    return 1


def _fixed(plan: StagePlan) -> Planner:
    return lambda results: plan


class StageLimits:
    """What ends a stage, so that every stage ends.

    Args:
        spec: What was asked.
        conversations: How many the inputs have; None: endless.
    """

    def __init__(self, spec: RunSpec, conversations: int | None) -> None:
        self._max_requests = spec.limits.max_requests
        self._max_seconds = spec.limits.max_seconds
        self._conversations = conversations
        self._saturation = spec.limits.saturation

    def of_stage(self, max_requests: int | None, max_seconds: float | None) -> StageLimits:
        """With a stage's own limits before the run's."""
        own = StageLimits.__new__(StageLimits)
        own._max_requests = max_requests or self._max_requests
        own._max_seconds = max_seconds or self._max_seconds
        own._conversations = self._conversations
        own._saturation = self._saturation
        return own

    def apply(self, plan: StagePlan) -> StagePlan:
        """The plan with its limits."""
        counts = [n for n in (self._max_requests, self._conversations) if n is not None]
        max_seconds = self._max_seconds
        ends_by_itself = isinstance(plan.arrivals, RampArrivals | TraceArrivals)
        if max_seconds is None and not counts and not ends_by_itself:
            max_seconds = DEFAULT_STAGE_S
        most = min(counts, default=None)
        asked = most is not None and most == self._max_requests
        return msgspec.structs.replace(
            plan,
            max_arrivals=most,
            max_seconds=max_seconds,
            natural_end="max_requests" if asked else "requests_exhausted",
            saturation=self._saturation,
        )


def _plans(
    profile: SingleProfile, bounds: StageLimits, trace_ns: Sequence[int] | None
) -> Iterator[StagePlan]:
    if isinstance(profile, SynchronousProfile):
        yield closed_stage("synchronous", {"kind": "synchronous"}, 1)
    elif isinstance(profile, ThroughputProfile):
        yield closed_stage("throughput", profile.model_dump(mode="json"), profile.cap)
    elif isinstance(profile, ConcurrentProfile):
        for streams in profile.streams:
            single = {"kind": "concurrent", "streams": streams}
            yield closed_stage(f"concurrent {streams}", single, streams)
    elif isinstance(profile, RampProfile):
        yield _ramp(profile)
    elif isinstance(profile, TraceProfile):
        yield _trace(profile, trace_ns)
    elif isinstance(profile, PluginProfile):
        yield _plugin(profile)
    else:
        for rate in profile.rate:
            yield rate_stage(profile, rate)


def closed_stage(name: str, profile: dict[str, Any], streams: int) -> StagePlan:
    """A stage whose completions release its sends; `StageLimits` says when it ends."""
    return StagePlan(
        name=name,
        profile=profile,
        streams=streams,
        arrivals=None,
        max_arrivals=None,
        max_seconds=None,
    )


def _open(
    name: str,
    profile: dict[str, Any],
    arrivals: ArrivalProcess,
    cap: int | None,
    asked_rate_per_s: float | None = None,
) -> StagePlan:
    return StagePlan(
        name=name,
        profile=profile,
        streams=cap,
        arrivals=arrivals,
        max_arrivals=None,
        max_seconds=None,
        asked_rate_per_s=asked_rate_per_s,
    )


def rate_stage(profile: ConstantProfile | PoissonProfile | GammaProfile, rate: float) -> StagePlan:
    """A stage at one of the profile's rates; `StageLimits` says when it ends."""
    arrivals: ArrivalProcess
    if isinstance(profile, ConstantProfile):
        arrivals = ConstantArrivals(rate)
    elif isinstance(profile, PoissonProfile):
        arrivals = PoissonArrivals(rate)
    else:
        arrivals = GammaArrivals(rate, profile.cv)
    single = profile.model_dump(mode="json") | {"rate": rate}
    return _open(f"{profile.kind} {rate:g}/s", single, arrivals, profile.cap, rate)


def _ramp(profile: RampProfile) -> StagePlan:
    arrivals = RampArrivals(profile.rate_from, profile.rate_to, profile.duration_s)
    name = f"ramp {profile.rate_from:g} to {profile.rate_to:g}/s"
    return _open(name, profile.model_dump(mode="json"), arrivals, profile.cap)


def _trace(profile: TraceProfile, trace_ns: Sequence[int] | None) -> StagePlan:
    if trace_ns is None:
        raise ConfigError("profile trace needs trace inputs (--profile trace --data FILE)")
    arrivals = TraceArrivals(trace_ns, profile.time_scale)
    name = f"trace × {profile.time_scale:g}"
    return _open(name, profile.model_dump(mode="json"), arrivals, profile.cap)


def _plugin(profile: PluginProfile) -> StagePlan:
    arrivals = make_plugin("headway.arrivals", profile.name, options=profile.options)
    if not callable(getattr(arrivals, "offsets_ns", None)):
        raise ConfigError(
            f"arrivals {profile.name} made {arrivals!r}, which has no method offsets_ns"
        )
    return _open(f"plugin {profile.name}", profile.model_dump(mode="json"), arrivals, profile.cap)


# --- sweep -------------------------------------------------------------------------------------


def _sweep(profile: SweepProfile, bounds: StageLimits) -> Iterator[Planner]:
    yield _fixed(bounds.apply(closed_stage("synchronous", {"kind": "synchronous"}, 1)))
    cap = profile.saturation_streams
    yield _fixed(bounds.apply(closed_stage("saturation", {"kind": "throughput", "cap": cap}, cap)))
    for step in range(1, profile.steps + 1):
        yield _between(profile, step, bounds)


def _between(profile: SweepProfile, step: int, bounds: StageLimits) -> Planner:
    def plan(results: Sequence[StageResult]) -> StagePlan | None:
        if len(results) < 2:
            return None
        low, high = sorted(result.achieved_per_s for result in results[:2])
        if high <= 0:
            return None  # Nothing succeeded: there is no range to sweep.
        rate = _round_rate(low + (high - low) * step / (profile.steps + 1))
        single: ConstantProfile | PoissonProfile
        if profile.arrivals == "constant":
            single = ConstantProfile(rate=(rate,))
        else:
            single = PoissonProfile(rate=(rate,))
        return bounds.apply(rate_stage(single, rate))

    return plan


def _round_rate(rate: float) -> float:
    """Three significant digits: more would feign precision, and cannot be typed again."""
    return float(f"{rate:.3g}")

"""How many worker processes a run gets when nobody says."""

from __future__ import annotations

import math

from headway.load.spec import (
    ConcurrentProfile,
    ConstantProfile,
    GammaProfile,
    PoissonProfile,
    RampProfile,
    RunSpec,
    SearchProfile,
    SingleProfile,
    StagesProfile,
    SweepProfile,
    ThroughputProfile,
)

RATE_PER_WORKER = 2_000
"""Requests per second that one worker is trusted with: a fraction of what it can send, so that
pacing keeps its exactness (see docs/decisions/0008-scheduling.md for the measurement)."""
STREAMS_PER_WORKER = 512


def worker_count(spec: RunSpec, cpus: int) -> int:
    """The number of workers: what was asked, else one, else what the load needs and cores allow.

    One core is left to the parent and to the server under test when it runs here.
    """
    if spec.workers is not None:
        return spec.workers
    profiles = _profiles(spec)
    needed = max((_needed(profile) for profile in profiles), default=1)
    return max(1, min(needed, cpus - 1))


def _profiles(spec: RunSpec) -> list[SingleProfile]:
    profile = spec.profile
    if isinstance(profile, StagesProfile):
        return [stage.profile for stage in profile.stages]
    if isinstance(profile, SweepProfile | SearchProfile):
        return [ThroughputProfile(cap=profile.saturation_streams)]
    return [profile]


def _needed(profile: SingleProfile) -> int:
    rate, streams = 0.0, 0
    if isinstance(profile, ConstantProfile | PoissonProfile | GammaProfile):
        rate = max(profile.rate)
    elif isinstance(profile, RampProfile):
        rate = max(profile.rate_from, profile.rate_to)
    elif isinstance(profile, ConcurrentProfile):
        streams = max(profile.streams)
    elif isinstance(profile, ThroughputProfile):
        streams = profile.cap
    return max(math.ceil(rate / RATE_PER_WORKER), math.ceil(streams / STREAMS_PER_WORKER))

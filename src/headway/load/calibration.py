"""The client's own floor (N3): the run's shape against a server that takes no time.

A simulated server with no delay, in a process of its own, is loaded for about a third of a second:
paced, to see what this client adds to each request, then as fast as it can, to see what it can
send at most. The same engine, and the same worker processes, measure the floor as measure the
target.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import msgspec

from headway.backends.spec import TargetSpec
from headway.core.errors import HeadwayError
from headway.load.fleet import Fleet
from headway.load.null_server import NullServer
from headway.load.runner import Run
from headway.load.spec import (
    ConcurrentProfile,
    ConstantProfile,
    GammaProfile,
    LimitSpec,
    PoissonProfile,
    RunSpec,
    StageSpec,
    StagesProfile,
    SyntheticInputSpec,
)
from headway.records.run_dir import RunDirectory
from headway.report import stage_summary
from headway.report.floor import floor_of

_PACED_S = 0.15
_SATURATED_S = 0.12
_PACED_PER_S = 500.0
_LEAST_PACED_PER_S = 400.0
"""So many that a median comes of it: at a rate of 10 a second two requests would have to do."""
_MOST_PACED_PER_S = 2_000.0
_SATURATING_STREAMS = 64
_START_LEAD_S = 0.02
"""Its medians bear a late first request, and nobody waits for a floor with pleasure."""


async def calibrate(spec: RunSpec, server: NullServer, fleet: Fleet) -> dict[str, Any] | None:
    """Measure the floor.

    Args:
        spec: The run whose shape is measured.
        server: Started; closing it is the caller's.
        fleet: The run's workers; they are told of the run afterwards.

    Returns:
        A `report.floor.Floor` as plain data for `run.json`; None when it could not be measured,
        which is no reason not to run.
    """
    with tempfile.TemporaryDirectory(prefix="headway-calibration-") as scratch:
        path = Path(scratch)
        try:
            floor_run = floor_spec(spec, await server.url())
            await Run(floor_run, path, fleet=fleet, start_lead_s=_START_LEAD_S).execute()
            directory = RunDirectory(path)
            paced = floor_of(stage_summary(directory, 0))
            fastest = floor_of(stage_summary(directory, 1), saturated=True)
        except (HeadwayError, OSError):
            return None
        floor = msgspec.structs.replace(paced, max_requests_per_s=fastest.max_requests_per_s)
        plain: dict[str, Any] = msgspec.to_builtins(floor)
        return plain


def floor_spec(spec: RunSpec, url: str) -> RunSpec:
    """The run against the null server that has the same shape as `spec`."""
    inputs = spec.inputs
    lengths = inputs if isinstance(inputs, SyntheticInputSpec) else SyntheticInputSpec()
    rate = min(max(_asked_rate(spec), _LEAST_PACED_PER_S), _MOST_PACED_PER_S)
    return RunSpec(
        target=TargetSpec(url=url),
        backend=spec.backend,
        inputs=SyntheticInputSpec(
            prompt_tokens=lengths.prompt_tokens, output_tokens=lengths.output_tokens
        ),
        profile=StagesProfile(
            stages=(
                StageSpec(profile=ConstantProfile(rate=(rate,)), max_seconds=_PACED_S),
                StageSpec(
                    profile=ConcurrentProfile(streams=(_SATURATING_STREAMS,)),
                    max_seconds=_SATURATED_S,
                ),
            )
        ),
        limits=LimitSpec(grace_s=1.0),
        workers=spec.workers,
        calibrate=False,
    )


def _asked_rate(spec: RunSpec) -> float:
    profile = spec.profile
    if isinstance(profile, ConstantProfile | PoissonProfile | GammaProfile):
        return max(profile.rate)
    return _PACED_PER_S

"""The client's own floor (N3): the run's shape against a server that takes no time.

A simulated server with no delay, in a process of its own, is loaded for about a second: paced, to
see what this client adds to each request, then as fast as it can, to see what it can send at
most. The same engine measures the floor as measures the target.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from headway.backends.spec import OpenAIBackendSpec, TargetSpec
from headway.core.errors import HeadwayError, WorkerLost
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

_STAGE_S = 0.5
_PACED_PER_S = 200.0
_MOST_PACED_PER_S = 2_000.0
_SATURATING_STREAMS = 64
_READY_DEADLINE_S = 15.0
_EXIT_DEADLINE_S = 3.0


def can_calibrate(spec: RunSpec) -> bool:
    """Whether the null server speaks the run's protocol."""
    return isinstance(spec.backend, OpenAIBackendSpec)


async def calibrate(spec: RunSpec) -> dict[str, Any] | None:
    """Measure the floor.

    Returns:
        A `report.floor.Floor` as plain data for `run.json`; None when it could not be measured,
        which is no reason not to run.
    """
    with tempfile.TemporaryDirectory(prefix="headway-calibration-") as scratch:
        path = Path(scratch)
        try:
            async with _null_server() as url:
                await Run(floor_spec(spec, url), path).execute()
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
    rate = min(_asked_rate(spec), _MOST_PACED_PER_S)
    return RunSpec(
        target=TargetSpec(url=url),
        backend=spec.backend,
        inputs=SyntheticInputSpec(
            prompt_tokens=lengths.prompt_tokens, output_tokens=lengths.output_tokens
        ),
        profile=StagesProfile(
            stages=(
                StageSpec(profile=ConstantProfile(rate=(rate,))),
                StageSpec(profile=ConcurrentProfile(streams=(_SATURATING_STREAMS,))),
            )
        ),
        limits=LimitSpec(max_seconds=_STAGE_S, grace_s=1.0),
        workers=spec.workers,
        calibrate=False,
    )


def _asked_rate(spec: RunSpec) -> float:
    profile = spec.profile
    if isinstance(profile, ConstantProfile | PoissonProfile | GammaProfile):
        return max(profile.rate)
    return _PACED_PER_S


@asynccontextmanager
async def _null_server() -> AsyncIterator[str]:
    process = _start_null_server()
    try:
        yield await asyncio.wait_for(_ready_url(process), _READY_DEADLINE_S)
    except TimeoutError as error:
        raise WorkerLost("the null server did not get ready in time") from error
    finally:
        process.kill()
        assert process.stdout is not None
        process.stdout.close()
        process.wait(_EXIT_DEADLINE_S)


def _start_null_server() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "headway.sim", "--die-with-parent"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # A group of its own: Ctrl-C in the terminal is for the parent to interpret.
        process_group=0,
    )


async def _ready_url(process: subprocess.Popen[bytes]) -> str:
    """The URL in the first line of the server's output."""
    assert process.stdout is not None
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), process.stdout
    )
    try:
        line = await reader.readline()
    finally:
        transport.close()
    if not line:
        raise WorkerLost("the null server ended before it was ready")
    ready: dict[str, Any] = json.loads(line)
    return str(ready["url"])

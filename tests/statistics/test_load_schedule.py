"""The schedule as whole fleets carried it out: dispersion, drift, variation, traces (L3)."""

from __future__ import annotations

import asyncio
import json
import math
import random
from itertools import pairwise

import pytest

from headway.core.clock import NS_PER_S
from headway.load import RunSpec, run
from headway.load.arrivals import PoissonArrivals, arrival_rng
from headway.records.run_dir import RunDirectory

DEADLINE_S = 60.0
INPUTS = {"kind": "synthetic", "prompt_tokens": 1, "output_tokens": 1}


async def dues(path, profile, *, workers=1, requests=2_000, inputs=INPUTS, seed=7):
    spec = RunSpec.model_validate(
        {
            "target": {"url": "http://127.0.0.1:1"},
            "backend": {"kind": "null"},
            "inputs": inputs,
            "profile": profile,
            "limits": {"max_requests": requests},
            "workers": workers,
            "calibrate": False,
            "seed": seed,
        }
    )
    await asyncio.wait_for(run(spec, path), DEADLINE_S)
    records = sorted(RunDirectory(path).records(), key=lambda record: record.index)
    assert [record.index for record in records] == list(range(len(records)))
    assert {record.status for record in records} == {"completed"}
    assert {record.worker for record in records} == set(range(workers))
    return [record.due_ns for record in records]


def dispersion_index(due_ns, window_s):
    """Variance over mean of the counts in windows: 1 for a Poisson process."""
    window_ns = round(window_s * NS_PER_S)
    windows = due_ns[-1] // window_ns
    counts = [0] * windows
    for due in due_ns:
        if due // window_ns < windows:
            counts[due // window_ns] += 1
    mean = math.fsum(counts) / windows
    return math.fsum((count - mean) ** 2 for count in counts) / windows / mean


async def test_poisson_is_poisson_and_the_same_over_1_2_and_8_workers(tmp_path):
    """Trap 26: with 8 workers the index was 7.3 and 241 of 200 requests/s were sent."""
    profile = {"kind": "poisson", "rate": [1_000]}
    schedules = {
        workers: await dues(tmp_path / str(workers), profile, workers=workers)
        for workers in (1, 2, 8)
    }
    assert schedules[1] == schedules[2] == schedules[8]
    mean_rate = len(schedules[1]) / (schedules[1][-1] / NS_PER_S)
    assert mean_rate == pytest.approx(1_000, rel=0.05)
    # 2,000 arrivals in windows of two: the index's own standard error is sqrt(2/1000) = 0.045.
    assert dispersion_index(schedules[1], 0.002) == pytest.approx(1.0, abs=0.1)


def test_the_poisson_process_itself_has_an_index_of_one_at_every_scale():
    """Trap 26, also for "a Poisson timer put 10% of arrivals on whole seconds"."""
    offsets = PoissonArrivals(400).offsets_ns(arrival_rng(11, 0))
    due_ns = [next(offsets) for _ in range(400_000)]
    for window_s in (0.01, 0.05, 0.25):
        assert dispersion_index(due_ns, window_s) == pytest.approx(1.0, abs=0.1)
    on_whole_seconds = sum(due % NS_PER_S < NS_PER_S // 100 for due in due_ns)
    assert on_whole_seconds / len(due_ns) == pytest.approx(0.01, rel=0.1)


async def test_a_constant_rate_has_no_drift_over_workers(tmp_path):
    """Trap 29."""
    rate = 777.0
    due_ns = await dues(tmp_path, {"kind": "constant", "rate": [rate]}, workers=2, requests=1_000)
    assert due_ns == [round(index * NS_PER_S / rate) for index in range(1_000)]


@pytest.mark.parametrize("cv", [0.3, 2.0])
async def test_gamma_gaps_vary_as_asked(tmp_path, cv):
    profile = {"kind": "gamma", "rate": [2_000], "cv": cv}
    due_ns = await dues(tmp_path, profile, workers=2, requests=4_000)
    gaps = [b - a for a, b in pairwise(due_ns)]
    mean = math.fsum(gaps) / len(gaps)
    sd = math.sqrt(math.fsum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(NS_PER_S / 2_000, rel=0.1)
    assert sd / mean == pytest.approx(cv, rel=0.1)


async def test_trace_offsets_are_reproduced_and_scaled(tmp_path):
    rng = random.Random(3)
    at_ms = [0]
    for _ in range(199):
        at_ms.append(at_ms[-1] + rng.choice([0, 1, 2, 17]))
    trace = tmp_path / "trace.jsonl"
    rows = [{"timestamp": at, "input_length": 4, "output_length": 1} for at in at_ms]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    due_ns = await dues(
        tmp_path / "run",
        {"kind": "trace", "time_scale": 0.5},
        workers=2,
        requests=None,
        inputs={"kind": "trace", "path": str(trace), "format": "mooncake"},
    )
    assert due_ns == [at * 500_000 for at in at_ms]

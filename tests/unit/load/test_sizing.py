"""As many workers as the asked load needs, and no more than there are cores for."""

from __future__ import annotations

import pytest

from headway.load.sizing import worker_count
from headway.load.spec import RunSpec


def count(profile, cpus, **fields):
    asked = {"target": {"url": "http://x"}, "profile": profile} | fields
    return worker_count(RunSpec.model_validate(asked), cpus)


@pytest.mark.parametrize(
    ("profile", "workers"),
    [
        ({"kind": "synchronous"}, 1),
        ({"kind": "constant", "rate": [100, 4_001]}, 3),
        ({"kind": "ramp", "rate_from": 5_000, "rate_to": 10, "duration_s": 1}, 3),
        ({"kind": "ramp", "rate_from": 10, "rate_to": 5_000, "duration_s": 1}, 3),
        ({"kind": "concurrent", "streams": [1, 513]}, 2),
        ({"kind": "throughput", "cap": 1_025}, 3),
        ({"kind": "sweep", "saturation_streams": 600}, 2),
        (
            {
                "kind": "stages",
                "stages": [
                    {"profile": {"kind": "synchronous"}},
                    {"profile": {"kind": "constant", "rate": [6_000]}},
                ],
            },
            3,
        ),
    ],
)
def test_the_largest_load_of_any_stage_decides(profile, workers):
    assert count(profile, cpus=64) == workers


def test_a_core_is_left_to_the_parent_and_one_worker_is_the_least():
    heavy = {"kind": "constant", "rate": [50_000]}
    assert count(heavy, cpus=4) == 3
    assert count(heavy, cpus=1) == 1


def test_who_says_how_many_gets_as_many():
    assert count({"kind": "constant", "rate": [50_000]}, cpus=1, workers=7) == 7

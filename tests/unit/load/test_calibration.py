"""The run that measures the client's floor has the shape of the run that it is for (N3)."""

from __future__ import annotations

import pytest

from headway.load.calibration import floor_spec
from headway.load.spec import RunSpec


def floor(profile, **fields):
    asked = {"target": {"url": "http://target"}, "profile": profile} | fields
    return floor_spec(RunSpec.model_validate(asked), "http://127.0.0.1:7")


@pytest.mark.parametrize(
    ("profile", "rate"),
    [
        ({"kind": "synchronous"}, 500.0),
        ({"kind": "concurrent", "streams": [64]}, 500.0),
        ({"kind": "constant", "rate": [3]}, 400.0),
        ({"kind": "poisson", "rate": [700, 900]}, 900.0),
        ({"kind": "gamma", "rate": [50_000], "cv": 2}, 2_000.0),
    ],
)
def test_it_is_paced_at_the_rate_that_was_asked_for_within_what_can_be_measured(profile, rate):
    paced, saturated = floor(profile).profile.stages
    assert paced.profile.rate == (rate,)
    assert saturated.profile.streams == (64,)


def test_it_sends_as_much_to_its_own_server_and_is_not_calibrated_itself():
    inputs = {"kind": "synthetic", "prompt_tokens": 77, "output_tokens": 5, "turns": 3}
    spec = floor({"kind": "synchronous"}, inputs=inputs, workers=2)
    assert spec.target.url == "http://127.0.0.1:7"
    assert (spec.inputs.prompt_tokens.mean, spec.inputs.output_tokens.mean) == (77, 5)
    assert spec.inputs.turns.mean == 1
    assert spec.workers == 2
    assert not spec.calibrate
    assert spec.target.headers == {}, "the target's credentials are not the null server's"

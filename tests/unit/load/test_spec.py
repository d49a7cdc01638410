"""Descriptions that contradict themselves are refused before anything starts, with what to do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headway.load.spec import RunSpec


def described(profile, **fields):
    return RunSpec.model_validate({"target": {"url": "http://x"}, "profile": profile} | fields)


@pytest.mark.parametrize(
    ("profile", "fields", "reason"),
    [
        (
            {"kind": "ramp", "rate_from": 0, "rate_to": 0, "duration_s": 5},
            {},
            "a ramp from 0 to 0 sends nothing",
        ),
        ({"kind": "trace"}, {}, "profile trace needs trace inputs"),
        ({"kind": "search", "slo": ""}, {}, "an objective is needed"),
        ({"kind": "search", "slo": "ttft p99 < soon"}, {}, "soon"),
        (
            {"kind": "search", "slo": "ttft p99 < 1s", "low_rate": 9, "high_rate": 9},
            {},
            "begins at 9/s, which must lie below 9/s",
        ),
        (
            {"kind": "synchronous"},
            {"limits": {"min_goodput": {"share": 0.9}}},
            "a lowest goodput needs objectives",
        ),
    ],
)
def test_a_description_that_cannot_be_carried_out_says_why(profile, fields, reason):
    with pytest.raises(ValidationError) as refused:
        described(profile, **fields)
    assert reason in str(refused.value)


def test_a_lowest_goodput_may_be_judged_by_what_a_search_asks():
    asked = described(
        {"kind": "search", "slo": "ttft p99 < 1s", "low_rate": 1},
        limits={"min_goodput": {"share": 0.9}},
    )
    assert asked.judged_by.ttft_s == 1.0

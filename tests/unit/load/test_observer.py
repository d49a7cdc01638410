"""What can be said of a stage that goes on."""

from __future__ import annotations

import pytest

from headway.load.observer import LiveSnapshot


def snapshot(**fields):
    given = {
        "stage": 0, "stages": 1, "name": "s", "elapsed_s": 3.0, "is_draining": False,
        "asked_rate_per_s": None, "streams": 4, "max_seconds": None, "max_requests": None,
        "sent": 12, "completed": 5, "errored": 2, "cancelled": 1, "in_flight": 4,
        "sent_rate_per_s": 4.0, "done_rate_per_s": 2.0,
    }  # fmt: skip
    return LiveSnapshot(**given | fields)


@pytest.mark.parametrize(
    ("limits", "fraction"),
    [
        ({}, None),
        ({"max_seconds": 12.0}, 0.25),
        ({"max_requests": 10}, 0.8),
        ({"max_seconds": 12.0, "max_requests": 10}, 0.8),
        ({"max_seconds": 4.0, "max_requests": 800}, 0.75),
        ({"max_seconds": 2.0}, 1.0),
    ],
)
def test_a_stage_is_as_far_as_the_rule_that_ends_it_first(limits, fraction):
    """Requests that failed or were cancelled are behind us too; a drain is never beyond the end."""
    assert snapshot(**limits).fraction_done == fraction

"""How fast and how urgently one may ask (J25)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.access.identity import LOCAL, Identity
from headway.access.roles import Role
from headway.api.fair_use import Buckets, FairUse
from headway.api.fair_use_settings import FairUseSettings
from headway.api.problems import Refusal
from headway.core.clock import ManualClock
from headway.store.submissions import NewJob

ANN = Identity("ann", "lab", Role.USER)
BOSS = Identity("boss", "lab", Role.ADMIN)
JOB = NewJob(operation="op", lane="short", input_json="{}", workspace="lab")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 12, 1, tzinfo=UTC), monotonic_ns=10**15)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 3), st.integers(1, 4)), max_size=60))
def test_no_history_gets_more_out_of_a_bucket_than_burst_and_rate(
    steps: list[tuple[float, int]],
) -> None:
    clock = ManualClock(datetime(2026, 12, 1, tzinfo=UTC), monotonic_ns=10**15)
    buckets = Buckets(rate_per_s=2.0, burst=5.0, clock=clock)
    passed_s, taken, last = 0.0, 0, 0
    for gap_s, count in steps:
        clock.advance(gap_s)
        passed_s += gap_s
        if buckets.take("ann", count) == 0:
            taken, last = taken + count, count
        # The last one may be on credit; it is paid back before the next.
        assert taken - last <= 5.0 + 2.0 * passed_s + 1e-6


def test_after_the_wait_that_was_named_the_next_passes(clock: ManualClock) -> None:
    buckets = Buckets(rate_per_s=2.0, burst=1.0, clock=clock)
    assert buckets.take("ann") == 0
    wait_s = buckets.take("ann")
    assert wait_s == pytest.approx(0.5)
    assert buckets.take("bob") == 0, "another's bucket"
    clock.advance(wait_s)
    assert buckets.take("ann") == 0


def test_a_batch_larger_than_the_bucket_passes_and_is_paid_back(clock: ManualClock) -> None:
    buckets = Buckets(rate_per_s=10.0, burst=20.0, clock=clock)
    assert buckets.take("lab", 1000) == 0
    assert buckets.take("lab", 1) == pytest.approx(98.1)


def test_buckets_are_bounded(clock: ManualClock) -> None:
    buckets = Buckets(rate_per_s=1.0, burst=1.0, clock=clock, most=10)
    for number in range(1000):
        buckets.take(f"user-{number}")
    assert len(buckets) == 10


def test_requests_are_counted_by_user_and_the_local_user_is_not(clock: ManualClock) -> None:
    fair_use = FairUse(FairUseSettings(requests_per_s=1.0), clock)
    for _ in range(100):
        fair_use.check_request(LOCAL)
    fair_use.check_request(ANN)
    fair_use.check_request(ANN)
    with pytest.raises(Refusal, match="ann may send 1 requests a second") as refused:
        fair_use.check_request(ANN)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (429, "1")
    fair_use.check_request(BOSS)


def test_submissions_are_counted_by_workspace(clock: ManualClock) -> None:
    fair_use = FairUse(FairUseSettings(submissions_per_min=60.0), clock)
    fair_use.check_submission([JOB] * 12, ANN)
    with pytest.raises(Refusal, match="'lab' may submit 60 jobs a minute") as refused:
        fair_use.check_submission([JOB], BOSS)
    assert refused.value.headers["retry-after"] == "11"
    clock.advance(11)
    fair_use.check_submission([JOB], BOSS)


def test_ceilings_follow_the_role(clock: ManualClock) -> None:
    fair_use = FairUse(FairUseSettings(ceilings={Role.USER: 7}), clock)
    assert fair_use.ceiling(ANN) == 7
    assert fair_use.ceiling(BOSS) == 1000
    assert fair_use.ceiling(LOCAL) is None

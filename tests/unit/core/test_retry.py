from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from headway.core.retry import RetryPolicy, Verdict


@given(
    st.integers(1, 5000), st.floats(0, 100), st.floats(1, 10), st.floats(0, 1000), st.floats(0, 1)
)
def test_a_delay_is_bounded_whatever_the_policy(
    failures: int, base_s: float, factor: float, cap_s: float, jitter: float
) -> None:
    policy = RetryPolicy(
        backoff_s=base_s, backoff_factor=factor, backoff_max_s=cap_s, jitter=jitter
    )
    assert 0 <= policy.delay_s(failures, random.Random(failures)) <= cap_s


def test_delays_grow_and_jitter_spreads_them() -> None:
    policy = RetryPolicy(backoff_s=1, backoff_factor=2, backoff_max_s=60, jitter=0.2)
    drawn = [[policy.delay_s(n, random.Random(seed)) for seed in range(200)] for n in (1, 2, 3)]
    for n, delays in enumerate(drawn):
        assert 0.8 * 2**n <= min(delays) < max(delays) <= 2**n
        assert len(set(delays)) > 100


def test_the_first_crash_is_retried_at_once_the_next_is_not() -> None:
    policy = RetryPolicy(backoff_s=5, jitter=0)
    assert policy.crash_delay_s(1, random.Random(1)) == 0
    assert policy.crash_delay_s(2, random.Random(1)) == 5


def test_verdicts() -> None:
    policy = RetryPolicy(max_attempts=3, retryable=True, quarantine_after=2)
    assert policy.after_retry_asked(2) is Verdict.AGAIN
    assert policy.after_retry_asked(3) is Verdict.EXHAUSTED
    assert policy.after_error(1, named=False) is Verdict.FINAL
    assert policy.after_error(1, named=True) is Verdict.AGAIN
    assert policy.after_crash(1, 1) is Verdict.AGAIN
    assert policy.after_crash(2, 2) is Verdict.QUARANTINED
    assert policy.after_crash(3, 1) is Verdict.EXHAUSTED
    assert RetryPolicy(max_attempts=3).after_crash(1, 1) is Verdict.FINAL

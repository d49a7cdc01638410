"""Stop rules: each rule, their order, and that nothing leaks from stage to stage."""

from __future__ import annotations

import pytest

from headway.load.messages import Counters
from headway.load.spec import ErrorRateLimit, GoodputLimit, LimitSpec
from headway.load.stop_rules import (
    MaxConsecutiveErrors,
    MaxErrorRate,
    MaxErrors,
    MaxSeconds,
    MinGoodput,
    StageProgress,
    Stop,
    rules_for,
)


def errors(count):
    return Counters(
        errored=count, leading_errors=count, longest_errors=count, trailing_errors=count
    )


def successes(count):
    return Counters(completed=count)


def test_time_alone_ends_a_stage():
    """Trap 32: rules asked only on request events let a silent server run for ever."""
    rule, progress = MaxSeconds(2.0), StageProgress()
    progress.passes(1.9)
    assert rule.evaluate(progress) is None
    progress.passes(2.0)
    stop = rule.evaluate(progress)
    assert stop is not None
    assert stop.reason == "max_seconds"
    assert not stop.is_error_rule


@pytest.mark.parametrize(
    ("limit_s", "said"), [(7.1000592, "7.1 s"), (0.25, "0.25 s"), (60, "60 s")]
)
def test_the_time_that_passed_is_said_without_digits_that_nobody_asked_for(limit_s, said):
    progress = StageProgress()
    progress.passes(limit_s)
    stop = MaxSeconds(limit_s).evaluate(progress)
    assert stop is not None
    assert stop.detail == f"{said} have passed"


def test_the_next_deadline_is_the_earliest_still_to_come():
    rules = rules_for(LimitSpec(max_errors=3), 5.0)
    assert rules.next_deadline_s(0.0) == 5.0
    assert rules.next_deadline_s(5.0) is None


def test_max_errors_counts_failures_only():
    rule, progress = MaxErrors(3), StageProgress()
    progress.add(1, Counters(completed=50, cancelled=9))
    progress.add(2, errors(2))
    assert rule.evaluate(progress) is None
    progress.add(3, errors(1))
    stop = rule.evaluate(progress)
    assert stop is not None
    assert stop.reason == "max_errors"
    assert stop.is_error_rule


def test_consecutive_errors_join_over_reports():
    rule, progress = MaxConsecutiveErrors(5), StageProgress()
    progress.add(1, Counters(completed=1, errored=3, longest_errors=3, trailing_errors=3))
    assert rule.evaluate(progress) is None
    progress.add(2, errors(2))
    assert rule.evaluate(progress) is not None


def test_errors_before_a_reports_first_success_end_the_row_of_the_report_before():
    rule, progress = MaxConsecutiveErrors(5), StageProgress()
    progress.add(1, errors(3))
    progress.add(2, Counters(completed=1, errored=2, leading_errors=2, longest_errors=2))
    assert rule.evaluate(progress) is not None


def test_a_success_breaks_a_row_of_errors():
    rule, progress = MaxConsecutiveErrors(5), StageProgress()
    progress.add(1, errors(4))
    progress.add(2, successes(1))
    progress.add(3, errors(4))
    assert rule.evaluate(progress) is None


def test_a_row_inside_one_report_is_seen_although_a_success_followed():
    rule, progress = MaxConsecutiveErrors(5), StageProgress()
    progress.add(1, Counters(completed=2, errored=5, longest_errors=5))
    assert rule.evaluate(progress) is not None


def test_the_error_rate_looks_at_its_window_only():
    limit = ErrorRateLimit(rate=0.5, window_s=10, minimum_requests=10)
    rule, progress = MaxErrorRate(limit), StageProgress()
    progress.add(0, successes(100))
    assert rule.evaluate(progress) is None
    progress.add(20, errors(10))
    stop = rule.evaluate(progress)
    assert stop is not None
    assert "10 of 10" in stop.detail


def test_the_error_rate_waits_for_enough_requests():
    limit = ErrorRateLimit(rate=0.1, window_s=10, minimum_requests=20)
    rule, progress = MaxErrorRate(limit), StageProgress()
    progress.add(1, errors(19))
    assert rule.evaluate(progress) is None


def test_time_passing_does_not_count_a_report_twice():
    limit = ErrorRateLimit(rate=0.5, window_s=60, minimum_requests=4)
    rule, progress = MaxErrorRate(limit), StageProgress()
    progress.add(1, errors(3))
    rule.evaluate(progress)
    for second in range(2, 10):
        progress.passes(second)
        assert rule.evaluate(progress) is None


def good(count, of):
    return Counters(completed=of, good=count)


def test_a_broken_objective_ends_a_stage():
    limit = GoodputLimit(share=0.9, window_s=10, minimum_requests=20)
    rule, progress = MinGoodput(limit), StageProgress()
    progress.add(1, good(18, of=20))
    assert rule.evaluate(progress) is None
    progress.add(2, good(0, of=1))
    stop = rule.evaluate(progress)
    assert stop is not None
    assert stop.reason == "min_goodput"
    assert "18 of 21" in stop.detail


def test_failed_requests_are_not_good():
    limit = GoodputLimit(share=0.9, window_s=10, minimum_requests=20)
    rule, progress = MinGoodput(limit), StageProgress()
    progress.add(1, Counters(completed=17, good=17, errored=3))
    assert rule.evaluate(progress) is not None


def test_goodput_looks_at_its_window_only_and_waits_for_enough_requests():
    limit = GoodputLimit(share=0.5, window_s=10, minimum_requests=20)
    rule, progress = MinGoodput(limit), StageProgress()
    progress.add(1, good(0, of=19))
    assert rule.evaluate(progress) is None
    progress.add(20, good(20, of=20))
    assert rule.evaluate(progress) is None


def test_rules_of_the_next_stage_know_nothing_of_the_last():
    """Trap 39: state kept in a rule leaked into the next stage."""
    limits = LimitSpec(
        max_consecutive_errors=3,
        max_error_rate=ErrorRateLimit(rate=0.5, minimum_requests=3),
    )
    broken = StageProgress()
    broken.add(1, errors(3))
    assert rules_for(limits, None).evaluate(broken) is not None
    fresh = StageProgress()
    fresh.add(1, successes(1))
    assert rules_for(limits, None).evaluate(fresh) is None


def test_a_library_user_can_add_a_rule():
    class Enough:
        def evaluate(self, progress):
            return Stop("enough", "ten are enough") if progress.completed >= 10 else None

        def deadline_s(self):
            return None

    rules = rules_for(LimitSpec(), None, [Enough])
    progress = StageProgress()
    progress.add(1, successes(10))
    stop = rules.evaluate(progress)
    assert stop is not None
    assert stop.reason == "enough"

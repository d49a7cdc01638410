"""What the parent counts of a stage and shows live."""

from __future__ import annotations

from headway.load.histogram import bucket_of
from headway.load.live import LiveCounters
from headway.load.messages import Counters, Report
from headway.load.stages import StagePlan
from headway.load.tally import StageTally

PLAN = StagePlan(
    name="constant 10/s",
    profile={},
    streams=None,
    arrivals=None,
    max_arrivals=100,
    max_seconds=5,
    asked_rate_per_s=10,
)


def report(**counters):
    in_flight = counters.pop("in_flight", 0)
    return Report(
        stage=0,
        records=b"",
        ended=b"",
        open_turns=[],
        dropped=b"",
        in_flight=in_flight,
        counters=Counters(**counters),
    )


def tally():
    return StageTally(LiveCounters(0, 2, PLAN))


def test_reports_of_all_workers_add_up():
    counted = tally()
    counted.report(0, report(sent=3, completed=3, in_flight=2), 1.0)
    counted.report(1, report(sent=2, completed=1, errored=1, in_flight=1), 1.0)
    counted.own(1.0, errored=2, cancelled=4)
    snapshot = counted.snapshot(1.0)
    assert (snapshot.completed, snapshot.errored, snapshot.cancelled) == (4, 3, 4)
    assert (snapshot.in_flight, snapshot.sent) == (3, 8)
    counted.worker_lost(1)
    assert counted.snapshot(1.0).in_flight == 2


def test_percentiles_are_unknown_until_something_is_known():
    """Trap 45: missing values counted as 0."""
    counted = tally()
    assert counted.snapshot(0.0).ttft_p50_s is None
    counted.report(0, report(ttft={bucket_of(20_000_000): 5}), 1.0)
    assert abs(counted.snapshot(1.0).ttft_p50_s - 0.02) < 0.0004


def test_rates_are_those_of_the_last_seconds():
    counted = tally()
    for second in range(20):
        counted.report(0, report(sent=10, completed=10), float(second))
        snapshot = counted.snapshot(float(second))
    counted.report(0, report(sent=100, completed=50), 20.0)
    assert abs(snapshot.sent_rate_per_s - 10) < 1
    assert counted.snapshot(20.0).sent_rate_per_s > 20


def test_what_completes_after_sending_ended_is_not_achieved():
    """Trap 45: a trimmed numerator over an untrimmed duration."""
    counted = tally()
    counted.report(0, report(sent=20, completed=20), 2.0)
    counted.sending_ended(2.0)
    counted.report(0, report(sent=5, completed=5), 3.0)
    counted.sending_ended(3.0)
    assert counted.achieved_per_s == 10


def test_the_most_frequent_error_is_shown():
    counted = tally()
    counted.report(0, report(errored=3, error_messages={"503": 2, "refused": 1}), 1.0)
    counted.report(0, report(errored=2, error_messages={"refused": 2}), 1.0)
    assert counted.snapshot(1.0).top_error == "refused"


def test_errors_that_are_all_different_fill_no_memory_and_hide_no_frequent_one():
    """A target that puts an id into each message would otherwise be kept whole."""
    counted = tally()
    counted.report(0, report(errored=1, error_messages={"refused": 1}), 1.0)
    for number in range(300):
        counted.report(0, report(errored=1, error_messages={f"id {number}": 1}), 1.0)
    counted.report(0, report(errored=1, error_messages={"refused": 1}), 1.0)
    counted.report(0, report(errored=3, error_messages={"after the hundredth": 3}), 1.0)
    snapshot = counted.snapshot(1.0)
    assert snapshot.top_error == "refused"
    assert snapshot.errored == 305

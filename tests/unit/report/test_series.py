from __future__ import annotations

import random
from typing import Any

import pytest

from headway.core.clock import NS_PER_S, ns_from_s
from headway.records.record import WorkerSample
from headway.report.columns import Columns
from headway.report.in_flight import InFlight
from headway.report.model import Series
from headway.report.series import BIN_WIDTHS_S, MAX_BINS, bin_width_s, build_series, tokens_between


def _series(records: list[Any], end_s: float, samples: Any = ()) -> Series:
    columns = Columns()
    columns.extend(records)
    end_ns = ns_from_s(end_s)
    series = build_series(columns, InFlight(columns, end_ns), samples, end_ns)
    assert series is not None
    return series


@pytest.mark.parametrize(
    ("duration_s", "width_s"),
    [
        (1, 0.25),
        (5, 0.25),
        (10, 0.5),
        (20, 1),
        (60, 1),
        (600, 1),
        (601, 2),
        (3600, 10),
        (86400, 300),
    ],
)
def test_bins_are_a_second_wide_unless_the_stage_is_short_or_long(
    duration_s: float, width_s: float
) -> None:
    assert bin_width_s(duration_s) == width_s
    assert width_s in BIN_WIDTHS_S
    assert duration_s / width_s <= MAX_BINS


def test_rates_add_up_to_the_events(make: Any) -> None:
    rng = random.Random(2)
    records: list[Any] = [make.completed(i, rng.random() * 29) for i in range(900)]
    records += [make.errored(900 + i, rng.random() * 29) for i in range(30)]
    series = _series(records, 30.0)
    assert series.bin_s == 1
    assert sum(series.offered_per_s) == pytest.approx(930)
    assert sum(series.sent_per_s) == pytest.approx(930)
    assert sum(series.completed_per_s) == pytest.approx(900)
    assert sum(series.errored_per_s) == pytest.approx(30)
    assert series.output_tokens_per_s is not None
    assert sum(series.output_tokens_per_s) == pytest.approx(900 * 20, abs=1)
    assert sum(series.in_flight_mean) == pytest.approx(900 * 0.115 + 30 * 0.003, abs=0.05)


def test_an_empty_bin_has_null_percentiles_and_a_true_zero_rate(make: Any) -> None:
    series = _series([make.completed(0, 0.5), make.completed(1, 24.5)], 25.0)
    assert series.ttft_p50_s[0] == pytest.approx(0.02)
    assert series.ttft_p50_s[10] is None
    assert series.completed_per_s[10] == 0
    assert series.errored_per_s == [0] * 25


def test_a_stall_shows_in_the_bins_in_which_its_users_came(make: Any) -> None:
    records = [make.completed(i, i / 10, late_s=3.0 if 100 <= i < 110 else 0) for i in range(250)]
    series = _series(records, 25.0)
    assert series.response_p99_s[10] == pytest.approx(3.115)
    assert series.lateness_p99_s[10] == pytest.approx(3.0)
    assert series.latency_p99_s[10] == pytest.approx(0.115)
    assert series.response_p99_s[9] == pytest.approx(0.115)


def test_the_last_bin_is_divided_by_its_own_width(make: Any) -> None:
    series = _series([make.completed(0, 20.1, done_ns=ns_from_s(20.4))], 20.5)
    assert series.completed_per_s[-1] == pytest.approx(2.0)


@pytest.mark.parametrize(("end_s", "bins"), [(20.0, 20), (20.4, 20), (20.5, 21), (20.9, 21)])
def test_a_sliver_at_the_end_belongs_to_the_bin_before_it(
    make: Any, end_s: float, bins: int
) -> None:
    """Two replies in 40 ms are no 50 a second: the end of a stage would dwarf all the rest."""
    ended = [make.completed(i, 19.0, done_ns=ns_from_s(end_s - 0.01)) for i in range(2)]
    series = _series(ended, end_s)
    assert len(series.start_s) == bins
    assert max(series.completed_per_s) <= 4.0


def test_tokens_are_spread_from_the_first_to_the_last(make: Any) -> None:
    columns = Columns()
    # 100 tokens between second 1 and second 5.
    columns.extend(
        [
            make.completed(
                0,
                0.5,
                first_token_ns=NS_PER_S,
                last_token_ns=5 * NS_PER_S,
                done_ns=6 * NS_PER_S,
                output_tokens=100,
            )
        ]
    )
    edges = [0, 2 * NS_PER_S, 3 * NS_PER_S, 10 * NS_PER_S]
    assert tokens_between(columns, edges) == pytest.approx([25, 25, 50])
    assert tokens_between(columns, [2 * NS_PER_S, 4 * NS_PER_S]) == pytest.approx([50])


def test_tokens_without_times_come_with_the_end_of_the_reply(make: Any) -> None:
    columns = Columns()
    columns.extend(
        [
            make.completed(
                i,
                0.0,
                first_token_ns=None,
                last_token_ns=None,
                output_tokens=7,
                done_ns=at * NS_PER_S,
            )
            for i, at in enumerate((1, 2, 3))
        ]
    )
    edges = [NS_PER_S, 2 * NS_PER_S, 3 * NS_PER_S]
    assert tokens_between(columns, edges) == [7, 14]


def test_unknown_token_counts_are_missing(make: Any) -> None:
    series = _series([make.completed(0, 0.0, output_tokens=None)], 1.0)
    assert series.output_tokens_per_s is None


def test_a_workers_lag_stands_in_every_bin_that_its_sample_covers(make: Any) -> None:
    sample = WorkerSample(
        stage=0, worker=0, at_ns=NS_PER_S, cpu_s=0.1, wall_s=1.0, loop_lag_max_ns=5_000_000,
        in_flight=1, rss_bytes=1,
    )  # fmt: skip
    series = _series([make.completed(0, 0.0)], 2.0, [sample])
    assert series.bin_s == 0.25
    assert series.loop_lag_max_s[:5] == [0.005] * 5
    assert series.loop_lag_max_s[5:] == [None] * 3

"""A stage over time, in bins."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from headway.core.clock import NS_PER_S, ns_from_s
from headway.records.record import WorkerSample
from headway.report.columns import ERRORED, MISSING, Columns
from headway.report.in_flight import InFlight
from headway.report.model import Series
from headway.report.quantiles import percentile

BIN_WIDTHS_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
MIN_BINS = 20
MAX_BINS = 600


def bin_width_s(duration_s: float) -> float:
    """One second, finer for stages under 20 s, coarser for stages over 10 minutes."""
    fitting = [width for width in BIN_WIDTHS_S if duration_s / width <= MAX_BINS]
    enough = [width for width in fitting if width <= 1.0 and duration_s / width >= MIN_BINS]
    if enough:
        return enough[-1]
    return fitting[0] if fitting else duration_s / MAX_BINS


class Bins:
    """Equal bins from a stage's start to its end; what is left at the end makes one of its own only
    when it is half as long as the others: in a sliver two replies would be hundreds a second.
    """

    def __init__(self, end_ns: int) -> None:
        self.width_ns = ns_from_s(bin_width_s(end_ns / NS_PER_S))
        self.count = max(1, (end_ns + self.width_ns // 2) // self.width_ns)
        self.edges_ns = [i * self.width_ns for i in range(self.count)] + [end_ns]

    def index(self, at_ns: int) -> int:
        """The bin of a moment; what lies beyond the ends belongs to the bin at that end."""
        return min(self.count - 1, max(0, at_ns // self.width_ns))

    def rates(self, moments: Iterable[int]) -> list[float]:
        """Events per second in each bin."""
        width = self.width_ns
        counts = [0.0] * self.count
        for index, count in Counter([at_ns // width for at_ns in moments]).items():
            counts[self.index(index * width)] += count
        return self.per_s(counts)

    def per_s(self, amounts: Sequence[float]) -> list[float]:
        """Amounts per second in each bin."""
        return [
            round(amount * NS_PER_S / (self.edges_ns[i + 1] - self.edges_ns[i]), 3)
            for i, amount in enumerate(amounts)
        ]

    def grouped(
        self, moments: Iterable[int], starts: Iterable[int], ends: Iterable[int]
    ) -> list[array[float]]:
        """Durations in seconds by the bin of their moments, of rows that know both."""
        width, last = self.width_ns, self.count - 1
        groups = [array("d") for _ in range(self.count)]
        for at_ns, start, end in zip(moments, starts, ends, strict=True):
            if end != MISSING and start != MISSING:
                index = at_ns // width
                groups[index if 0 <= index < last else last].append((end - start) / NS_PER_S)
        return groups

    def percentiles(
        self,
        moments: Iterable[int],
        starts: Iterable[int],
        ends: Iterable[int],
    ) -> tuple[list[float | None], list[float | None]]:
        """The p50 and the p99 of each bin; None where it is empty."""
        middle: list[float | None] = []
        tail: list[float | None] = []
        for group in self.grouped(moments, starts, ends):
            ordered = sorted(group)
            middle.append(_point(ordered, 500))
            tail.append(_point(ordered, 990))
        return middle, tail


def build_series(
    columns: Columns, in_flight: InFlight, samples: Sequence[WorkerSample], end_ns: int
) -> Series | None:
    """Lay a stage's events over time.

    Args:
        columns: All records of the stage.
        in_flight: Its concurrency.
        samples: Its workers' samples.
        end_ns: The stage's end.

    Returns:
        None for a stage without records or without duration.
    """
    if not len(columns) or end_ns <= 0:
        return None
    bins = Bins(end_ns)
    done = columns.completed()
    ttft_p50, ttft_p99 = bins.percentiles(done.due, done.sent, done.first_token)
    latency_p50, latency_p99 = bins.percentiles(done.due, done.sent, done.done)
    _, response_p99 = bins.percentiles(done.due, done.due, done.done)
    late_p50, late_p99 = bins.percentiles(columns.due, columns.due, columns.sent)
    return Series(
        bin_s=bins.width_ns / NS_PER_S,
        start_s=[edge / NS_PER_S for edge in bins.edges_ns[:-1]],
        offered_per_s=bins.rates(due for due in columns.due if due <= end_ns),
        sent_per_s=bins.rates(sent for sent in columns.sent if sent != MISSING),
        completed_per_s=bins.rates(at_ns for at_ns in done.done if at_ns != MISSING),
        errored_per_s=bins.rates(_error_moments(columns)),
        output_tokens_per_s=_token_rates(done, bins),
        in_flight_mean=[round(mean, 3) for mean in in_flight.means(bins.edges_ns)],
        ttft_p50_s=ttft_p50,
        ttft_p99_s=ttft_p99,
        latency_p50_s=latency_p50,
        latency_p99_s=latency_p99,
        response_p99_s=response_p99,
        lateness_p50_s=late_p50,
        lateness_p99_s=late_p99,
        loop_lag_max_s=_worst_lags(samples, bins),
    )


def tokens_between(completed: Columns, edges_ns: Sequence[int]) -> list[float] | None:
    """Output tokens of completed requests between successive edges.

    A reply's tokens are spread evenly from its first token to its last; a reply without token times
    has them all when it was done. None when no count is known.
    """
    amounts = [0.0] * (len(edges_ns) - 1)
    known = False
    for tokens, first, last, done in _token_rows(completed):
        known = True
        if first == last or MISSING in (first, last):
            _place(amounts, edges_ns, tokens, done if MISSING in (first, last) else last)
        else:
            _spread(amounts, edges_ns, (tokens, first, last))
    return amounts if known else None


def _place(amounts: list[float], edges_ns: Sequence[int], tokens: int, at_ns: int) -> None:
    if edges_ns[0] <= at_ns <= edges_ns[-1]:
        amounts[min(bisect_right(edges_ns, at_ns), len(amounts)) - 1] += tokens


def _spread(amounts: list[float], edges_ns: Sequence[int], reply: tuple[int, int, int]) -> None:
    tokens, first, last = reply
    start = bisect_right(edges_ns, first) - 1
    if 0 <= start < len(amounts) and last <= edges_ns[start + 1]:
        amounts[start] += tokens  # most replies lie within one bin
        return
    per_ns = tokens / (last - first)
    for i in range(max(0, start), len(amounts)):
        low, high = edges_ns[i], edges_ns[i + 1]
        if low >= last:
            break
        amounts[i] += per_ns * max(0, min(last, high) - max(first, low))


def _token_rows(completed: Columns) -> Iterator[tuple[int, int, int, int]]:
    rows = zip(
        completed.output_tokens,
        completed.first_token,
        completed.last_token,
        completed.done,
        strict=True,
    )
    return (row for row in rows if row[0] != MISSING and row[3] != MISSING)


def _token_rates(completed: Columns, bins: Bins) -> list[float] | None:
    amounts = tokens_between(completed, bins.edges_ns)
    return None if amounts is None else bins.per_s(amounts)


def _error_moments(columns: Columns) -> Iterator[int]:
    for status, due, done in zip(columns.status, columns.due, columns.done, strict=True):
        if status == ERRORED:
            yield due if done == MISSING else done


def _point(ordered: Sequence[float], per_mille: int) -> float | None:
    return round(percentile(ordered, per_mille), 6) if ordered else None


def _worst_lags(samples: Sequence[WorkerSample], bins: Bins) -> list[float | None]:
    worst: list[float | None] = [None] * bins.count
    for sample in samples:
        lag_s = sample.loop_lag_max_ns / NS_PER_S
        last = bins.index(sample.at_ns)
        # A sample speaks for the time since the one before it, which may span several bins.
        first = bins.index(sample.at_ns - ns_from_s(sample.wall_s) + 1)
        for i in range(first, last + 1):
            worst[i] = max(lag_s, worst[i] or 0.0)
    return worst

"""The report: what is published of a run, as `report.json` holds it.

Every name carries its unit: durations are seconds (`_s`), rates are per second (`_per_s`), shares
are fractions of 1 (`_share`). What was not measured is null, never 0. `docs/metrics.md` defines
each value; `docs/report-schema.json` is generated from these structs.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

REPORT_SCHEMA_VERSION = 1

INFINITY: Literal["Infinity"] = "Infinity"
"""JSON has no infinite number; both Python's float() and JavaScript's Number() read this word."""

PercentileName = Literal["p50", "p75", "p90", "p95", "p99", "p999"]

VerdictWord = Literal[
    "VALID",
    "WORKER_LOST",
    "ERRORS",
    "CLIENT_BOUND",
    "SCHEDULE_MISSED",
    "NOT_STEADY",
    "CACHE_WARM",
    "TOO_FEW_SAMPLES",
]


class DurationSummary(msgspec.Struct, kw_only=True, frozen=True):
    """How a duration was distributed over the requests that have it."""

    count: int
    mean_s: float
    sd_s: float
    min_s: float
    p50_s: float
    p75_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    p999_s: float
    max_s: float
    trusted: list[PercentileName]
    """The percentiles that this many samples can bound."""


class FailurePercentiles(msgspec.Struct, kw_only=True, frozen=True):
    """Percentiles in which each request that did not complete counts as infinite."""

    count: int
    failed: int
    p50_s: float | Literal["Infinity"]
    p75_s: float | Literal["Infinity"]
    p90_s: float | Literal["Infinity"]
    p95_s: float | Literal["Infinity"]
    p99_s: float | Literal["Infinity"]
    p999_s: float | Literal["Infinity"]


class WithFailures(msgspec.Struct, kw_only=True, frozen=True):
    """Failure-as-infinite percentiles; each is null when every request completed."""

    ttft: FailurePercentiles | None
    latency: FailurePercentiles | None
    response: FailurePercentiles | None


class TokenSummary(msgspec.Struct, kw_only=True, frozen=True):
    """How a number of tokens was distributed over requests."""

    count: int
    """Requests for which it is known."""
    total_tokens: int
    mean_tokens: float
    min_tokens: int
    p50_tokens: int
    p95_tokens: int
    max_tokens: int


class Tokens(msgspec.Struct, kw_only=True, frozen=True):
    """Tokens of the completed requests, and who counted them."""

    input: TokenSummary | None
    output: TokenSummary | None
    output_sources: dict[str, int]
    """Requests by the source of their output count: `usage`, `tokenizer`, `chunks`."""
    cached_share: float | None
    """Cached input tokens over input tokens, of first turns; null: the server does not say."""


class Window(msgspec.Struct, kw_only=True, frozen=True):
    """The part of a stage that its numbers are made of, in seconds since its start."""

    start_s: float
    end_s: float
    duration_s: float
    end_basis: Literal["sending_ended", "stage_ended", "last_record"]
    """What the end is: sending ended (less the cool-down); the whole stage, where nothing had
    completed by then; the last record of a stage that was never ended."""


class Counts(msgspec.Struct, kw_only=True, frozen=True):
    """Requests due in the window, by what became of them; and what lies outside it."""

    offered: int
    completed: int
    errored: int
    cancelled: int
    never_sent: int
    """Of the errored and cancelled: those that never reached the wire."""
    outside_window: int
    recorded: int
    """All records of the stage."""
    duplicates: int
    """Records that repeat one already seen; they are not counted anywhere."""
    missing: int | None
    """Arrivals that the scheduler offered and no record tells of; null: the stage never ended."""
    resent: int
    new_connections: int | None
    """Requests that opened a connection; null: not recorded."""


class Rates(msgspec.Struct, kw_only=True, frozen=True):
    """Events in the window over its duration; null when the window is empty."""

    asked_per_s: float | None
    """What the load profile asks for, where it is a constant."""
    offered_per_s: float | None
    sent_per_s: float | None
    completed_per_s: float | None
    errored_per_s: float | None
    input_tokens_per_s: float | None
    output_tokens_per_s: float | None


class Concurrency(msgspec.Struct, kw_only=True, frozen=True):
    """Requests in flight (sent, not done) over the window, exact from their events."""

    mean: float
    """Time-weighted."""
    max: int


class ObjectiveResult(msgspec.Struct, kw_only=True, frozen=True):
    """How the offered requests fared against one objective, timed from when each was due."""

    name: Literal["ttft_s", "tpot_s", "latency_s", "response_s"]
    limit_s: float
    met: int
    missed: int
    undefined: int
    """Completed, but without this value (for example TPOT of a one-token answer): not good."""


class Goodput(msgspec.Struct, kw_only=True, frozen=True):
    """Requests that met every objective, against all that were offered."""

    good: int
    offered: int
    good_share: float | None
    good_per_s: float | None
    objectives: list[ObjectiveResult]


class ErrorGroup(msgspec.Struct, kw_only=True, frozen=True):
    """Failures with the same cause, over the whole stage."""

    category: str
    status: int | None
    message: str
    count: int
    first_at_s: float
    first_index: int
    first_turn: int
    first_worker: int
    body: str | None
    """The start of the first one's reply body, or its traceback."""


class ClientHealth(msgspec.Struct, kw_only=True, frozen=True):
    """What the load workers said of themselves during the window."""

    samples: int
    cpu_share_max: float
    """CPU seconds per second of the busiest worker."""
    cpu_share_mean: float
    loop_lag_p50_s: float
    """Median of each sample's worst event-loop delay."""
    loop_lag_max_s: float
    rss_max_bytes: int
    """Largest resident memory of one worker."""


class Trend(msgspec.Struct, kw_only=True, frozen=True):
    """Whether a measure moved over the window, from equal blocks of time."""

    measure: Literal["ttft_s", "response_s", "in_flight"]
    blocks: list[float]
    first: float
    """Median of the first third of the blocks."""
    last: float
    change_share: float
    """(last − first) / first."""
    z: float
    """Mann-Kendall statistic; beyond ±2.58 chance explains it in fewer than 1 of 100 stages."""


class Histogram(msgspec.Struct, kw_only=True, frozen=True):
    """Counts between ascending edges; the last bin also holds everything above it."""

    edges_s: list[float]
    counts: list[int]


class Curve(msgspec.Struct, kw_only=True, frozen=True):
    """A distribution drawn: its quantiles on a fixed grid, and its histogram."""

    shares: list[float]
    quantiles_s: list[float]
    histogram: Histogram


class Curves(msgspec.Struct, kw_only=True, frozen=True):
    """The drawn distributions of completed requests."""

    ttft: Curve | None
    latency: Curve | None
    response: Curve | None


class Series(msgspec.Struct, kw_only=True, frozen=True):
    """The stage over time in bins of equal width, warm-up and drain included.

    Offers, latencies and lateness stand in the bin in which the request was due; sends,
    completions and errors where they happened. Null: nothing to measure in that bin.
    """

    bin_s: float
    start_s: list[float]
    offered_per_s: list[float]
    sent_per_s: list[float]
    completed_per_s: list[float]
    errored_per_s: list[float]
    output_tokens_per_s: list[float] | None
    in_flight_mean: list[float]
    ttft_p50_s: list[float | None]
    ttft_p99_s: list[float | None]
    latency_p50_s: list[float | None]
    latency_p99_s: list[float | None]
    response_p99_s: list[float | None]
    lateness_p50_s: list[float | None]
    lateness_p99_s: list[float | None]
    loop_lag_max_s: list[float | None]


class Check(msgspec.Struct, kw_only=True, frozen=True):
    """One question that the verdict asked of a stage, and what the stage answered."""

    word: VerdictWord
    """What it says when the check fails."""
    measure: str
    value: float | Literal["Infinity"] | None
    """Null: it could not be measured, and `text` says why."""
    limit: float
    failed: bool
    text: str
    """The finding in one sentence."""


class Verdict(msgspec.Struct, kw_only=True, frozen=True):
    """Whether a stage's numbers can be trusted, with the evidence either way."""

    word: VerdictWord
    """The first of `words` in the order of causes, or VALID."""
    words: list[VerdictWord]
    """All that hold; empty when VALID."""
    checks: list[Check]


class StageReport(msgspec.Struct, kw_only=True, frozen=True):
    """One stage's numbers."""

    stage: int
    name: str
    profile: dict[str, Any]
    loop: Literal["open", "closed"]
    started_wall: str | None
    workers: int | None
    partial: bool
    """It was interrupted, lost a worker, or was never ended."""
    done_again_as: int | None = None
    """The later, whole stage that carried out the same step once more, after a resume; then this
    one counts neither for the verdict nor for a comparison or a gate."""
    ended_reason: str | None
    ended_detail: str | None
    verdict: Verdict
    window: Window
    counts: Counts
    rates: Rates
    concurrency: Concurrency | None
    lateness: DurationSummary | None
    ttft: DurationSummary | None
    ttfo: DurationSummary | None
    latency: DurationSummary | None
    response: DurationSummary | None
    tpot: DurationSummary | None
    chunk_gap: DurationSummary | None
    """From buckets with a relative error of at most 0.4%."""
    stall: DurationSummary | None
    pool_wait: DurationSummary | None
    connect: DurationSummary | None
    tls: DurationSummary | None
    with_failures: WithFailures
    tokens: Tokens
    goodput: Goodput | None
    """Null: no objective was set."""
    errors: list[ErrorGroup]
    client: ClientHealth | None
    trends: list[Trend]
    curves: Curves
    series: Series | None


class LostWorker(msgspec.Struct, kw_only=True, frozen=True):
    """A load worker that died."""

    worker: int
    stage: int | None
    cause: str
    lost_requests: int


class RunNote(msgspec.Struct, kw_only=True, frozen=True):
    """What a reader of the run must know."""

    topic: str
    text: str
    data: dict[str, Any] | None


class RunInfo(msgspec.Struct, kw_only=True, frozen=True):
    """What was asked, and on what it ran."""

    run_id: str
    created: str
    seed: int
    target_url: str | None
    model: str | None
    backend: str | None
    labels: dict[str, str]
    spec: dict[str, Any]
    provenance: dict[str, Any]


class Report(msgspec.Struct, kw_only=True, frozen=True):
    """A run, as published in `report.json`."""

    schema_version: int = REPORT_SCHEMA_VERSION
    run: RunInfo
    verdict: VerdictWord
    """VALID when every stage that counts is; else the word that stands first in the order of
    causes."""
    complete: bool
    """Every stage that counts was ended by a rule of its own."""
    calibration: dict[str, Any] | None
    """The client's own floor against a null server; null: not measured."""
    stages: list[StageReport]
    workers_lost: list[LostWorker]
    notes: list[RunNote]

    @property
    def counted(self) -> list[StageReport]:
        """The stages that the run is judged by: all but those that were done again in full."""
        return [stage for stage in self.stages if stage.done_again_as is None]

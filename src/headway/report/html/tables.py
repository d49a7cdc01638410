"""The tables of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headway.report.html.markup import Child, Markup, fragment, tag
from headway.report.html.numbers import MISSING, mebibytes, ms, percent, plain
from headway.report.model import (
    Check,
    DurationSummary,
    ErrorGroup,
    FailurePercentiles,
    Report,
    StageReport,
    TokenSummary,
    VerdictWord,
)

_TEXT_COLUMNS = frozenset(
    {
        "Verdict",
        "Verdict if not",
        "Finding",
        "Category",
        "Message and start of the first body",
        "Value",
    }
)
_PERCENTILES = ("p50", "p75", "p90", "p95", "p99", "p999")


def table(
    caption: str, headers: Sequence[Child], rows: Sequence[Markup], *, dense: bool = False
) -> Markup:
    """A table that scrolls sideways on a narrow screen."""
    head = tag(
        "tr",
        [
            tag("th", header, scope="col", class_="left" if header in _TEXT_COLUMNS else None)
            for header in headers
        ],
    )
    body = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", rows))
    kind = "scroll dense" if dense else "scroll"
    return tag("div", body, class_=kind, tabindex=0, role="region", aria_label=caption)


def text_row(name: Child, text: Child) -> Markup:
    """A row whose one cell is prose."""
    return row(name, tag("td", text, class_="text"))


def row(name: Child, *cells: Child) -> Markup:
    """A row with its header; cells that are not elements yet become data cells."""
    data = [
        cell if isinstance(cell, Markup) and cell.startswith("<td") else tag("td", cell)
        for cell in cells
    ]
    return tag("tr", tag("th", name, scope="row"), data)


def chip(word: VerdictWord) -> Markup:
    """A verdict's word."""
    return tag("span", word, class_=f"chip {verdict_tone(word)}")


def verdict_tone(word: VerdictWord) -> str:
    """The page's colour for a word: too few samples limit a stage, the others spoil it."""
    return {"VALID": "good", "TOO_FEW_SAMPLES": "fair"}.get(word, "bad")


def stages_table(report: Report) -> Markup:
    """One row a stage; columns that no stage has are left out."""
    stages = report.stages
    columns = [(header, read) for header, has, read in _STAGE_COLUMNS if any(map(has, stages))]
    rows = [
        row(
            _stage_name(stage),
            tag("td", chip(stage.verdict.word), class_="left"),
            *[read(stage) for _, read in columns],
        )
        for stage in stages
    ]
    headers: list[Child] = ["Stage", "Verdict", *[header for header, _ in columns]]
    return table("Stages; the name leads to the details", headers, rows, dense=True)


def _stage_name(stage: StageReport) -> Markup:
    return fragment(
        tag("a", stage.name, href=f"#stage-{stage.stage}"),
        partial_chip(stage),
    )


def partial_chip(stage: StageReport) -> Markup | None:
    """Says of a stage that it was cut short; None for a whole one."""
    if stage.done_again_as is not None:
        return tag("span", "broken off, done again", class_="chip")
    return tag("span", "partial", class_="chip fair") if stage.partial else None


def point(summary: DurationSummary | None, name: str) -> Markup:
    """A percentile in ms; pale when so few samples cannot bound it."""
    if summary is None:
        return tag("td", MISSING)
    trusted = name in summary.trusted
    title = None if trusted else f"{summary.count} samples are too few to bound this percentile"
    return tag(
        "td",
        ms(getattr(summary, f"{name}_s")),
        class_=None if trusted else "pale",
        title=title,
    )


_StageColumn = tuple[str, Callable[[StageReport], object], Callable[[StageReport], Child]]

_STAGE_COLUMNS: tuple[_StageColumn, ...] = (
    ("asked /s", lambda s: s.rates.asked_per_s, lambda s: plain(s.rates.asked_per_s)),
    ("completed /s", lambda _: True, lambda s: plain(s.rates.completed_per_s)),
    (
        "in flight",
        lambda s: s.concurrency,
        lambda s: plain(s.concurrency.mean if s.concurrency else None),
    ),
    ("TTFT p50 ms", lambda s: s.ttft, lambda s: point(s.ttft, "p50")),
    ("TTFT p99 ms", lambda s: s.ttft, lambda s: point(s.ttft, "p99")),
    ("TPOT p50 ms", lambda s: s.tpot, lambda s: point(s.tpot, "p50")),
    ("latency p50 ms", lambda _: True, lambda s: point(s.latency, "p50")),
    ("latency p99 ms", lambda _: True, lambda s: point(s.latency, "p99")),
    ("response p99 ms", lambda _: True, lambda s: point(s.response, "p99")),
    ("lateness p99 ms", lambda _: True, lambda s: point(s.lateness, "p99")),
    (
        "tokens out /s",
        lambda s: s.rates.output_tokens_per_s is not None,
        lambda s: plain(s.rates.output_tokens_per_s),
    ),
    ("completed", lambda _: True, lambda s: f"{s.counts.completed:,}"),
    (
        "failed",
        lambda _: True,
        lambda s: tag("td", f"{s.counts.errored:,}", class_="bad" if s.counts.errored else None),
    ),
    (
        "goodput",
        lambda s: s.goodput,
        lambda s: percent(s.goodput.good_share if s.goodput else None),
    ),
)
"""Header, whether a stage has it, its cell."""


def durations_table(stage: StageReport) -> Markup:
    """Every duration of a stage, failures as infinite beside the successes."""
    with_failures = stage.with_failures
    rows = [
        _duration_row("Time to first token (TTFT)", stage.ttft),
        _failure_row("TTFT, failures as ∞", with_failures.ttft),
        _duration_row("Time to first output (TTFO)", stage.ttfo),
        _duration_row("Time per output token (TPOT)", stage.tpot),
        _duration_row("Service latency", stage.latency),
        _failure_row("Service latency, failures as ∞", with_failures.latency),
        _duration_row("Response time (from due)", stage.response),
        _failure_row("Response time, failures as ∞", with_failures.response),
        _duration_row("Lateness", stage.lateness),
        _duration_row("Chunk gap (pooled, ±0.4%)", stage.chunk_gap),
        _duration_row("Stall (largest gap of a request)", stage.stall),
        _duration_row("Waiting for a connection", stage.pool_wait),
        _duration_row("Connect", stage.connect),
        _duration_row("TLS handshake", stage.tls),
    ]
    headers: list[Child] = [
        "Duration in ms", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", "mean", "samples",
    ]  # fmt: skip
    return table(f"Durations of {stage.name}", headers, [r for r in rows if r])


def _duration_row(name: str, summary: DurationSummary | None) -> Markup:
    if summary is None:
        return fragment()
    return row(
        name,
        *[point(summary, percentile) for percentile in _PERCENTILES],
        ms(summary.max_s),
        ms(summary.mean_s),
        f"{summary.count:,}",
    )


def _failure_row(name: str, points: FailurePercentiles | None) -> Markup:
    if points is None:
        return fragment()
    values = [ms(getattr(points, f"{percentile}_s")) for percentile in _PERCENTILES]
    return row(name, *values, "∞", MISSING, f"{points.count:,}")


def amounts_table(stage: StageReport) -> Markup:
    """Counts, rates, tokens and the client's state."""
    counts, rates, tokens, window = stage.counts, stage.rates, stage.tokens, stage.window
    sources = ", ".join(f"{name} ({n:,})" for name, n in tokens.output_sources.items())
    facts: list[tuple[str, str | None]] = [
        ("Measured window", f"{window.start_s:.2f} to {window.end_s:.2f} s"),
        ("Offered requests", f"{counts.offered:,}"),
        (
            "Completed, failed, cancelled",
            f"{counts.completed:,}, {counts.errored:,}, {counts.cancelled:,}",
        ),
        ("Never sent", f"{counts.never_sent:,}"),
        ("Outside the window", f"{counts.outside_window:,}"),
        (
            "Offered, sent, completed per second",
            ", ".join(
                plain(r) for r in (rates.offered_per_s, rates.sent_per_s, rates.completed_per_s)
            ),
        ),
        ("In flight, mean and most", _in_flight(stage)),
        ("Input tokens of a request", _tokens(tokens.input)),
        ("Output tokens of a request", _tokens(tokens.output)),
        ("Output tokens per second", plain(rates.output_tokens_per_s)),
        ("Output tokens were counted by", sources or None),
        ("Input tokens that the target had cached", percent(tokens.cached_share)),
        ("Good requests of those offered", _goodput(stage)),
        ("New connections, requests sent again", _connections(stage)),
        ("Busiest worker: CPU, memory", _cpu(stage)),
    ]
    shown = [text_row(name, value) for name, value in facts if value not in (None, MISSING)]
    return table(f"Amounts of {stage.name}", ["What", "Value"], shown)


def _in_flight(stage: StageReport) -> str | None:
    found = stage.concurrency
    return f"{plain(found.mean)}, {found.max:,}" if found else None


def _tokens(summary: TokenSummary | None) -> str | None:
    if summary is None:
        return None
    spread = f"{summary.min_tokens:,} to {summary.max_tokens:,}"
    return f"{plain(summary.mean_tokens)} on average ({spread})"


def _goodput(stage: StageReport) -> str | None:
    found = stage.goodput
    if found is None:
        return None
    share, rate = percent(found.good_share), plain(found.good_per_s)
    return f"{found.good:,} of {found.offered:,} ({share}), {rate}/s"


def _connections(stage: StageReport) -> str | None:
    opened = stage.counts.new_connections
    return None if opened is None else f"{opened:,}, {stage.counts.resent:,}"


def _cpu(stage: StageReport) -> str | None:
    client = stage.client
    if client is None:
        return None
    return f"{percent(client.cpu_share_max)} of a core, {mebibytes(client.rss_max_bytes)}"


def objectives_table(stage: StageReport) -> Markup:
    """How the requests fared against each objective; nothing where none was set."""
    if stage.goodput is None:
        return fragment()
    rows = [
        row(
            f"{found.name.removesuffix('_s').replace('_', ' ')} ≤ {ms(found.limit_s)} ms",
            f"{found.met:,}",
            f"{found.missed:,}",
            f"{found.undefined:,}",
        )
        for found in stage.goodput.objectives
    ]
    return table(
        f"Objectives of {stage.name}, timed from due",
        ["Objective", "met", "missed", "undefined"],
        rows,
    )


def checks_table(stage: StageReport) -> Markup:
    """Every question that the verdict asked, with its answer."""
    rows = [
        row(
            _answer(check),
            tag("td", check.word, class_="word"),
            tag("td", check.text, class_="text"),
        )
        for check in stage.verdict.checks
    ]
    return table(f"Evidence for {stage.name}", ["Check", "Verdict if not", "Finding"], rows)


def _answer(check: Check) -> Markup:
    if check.failed:
        return tag("span", "failed", class_="mark bad")
    if check.value is None:
        return tag("span", "not measured", class_="mark pale")
    return tag("span", "passed", class_="mark good")


def errors_table(stage: StageReport) -> Markup:
    """Failures by cause; nothing where there was none."""
    if not stage.errors:
        return fragment()
    rows = [_error_row(group) for group in stage.errors]
    headers: list[Child] = ["Count", "Category", "Status", "Message and start of the first body"]
    return table(f"Errors of {stage.name}, by cause", headers, rows)


def _error_row(group: ErrorGroup) -> Markup:
    where = f"first at {group.first_at_s:.3f} s, request {group.first_index}"
    if group.first_turn:
        where += f", turn {group.first_turn}"
    message = tag(
        "td",
        tag("div", group.message),
        tag("div", where, class_="note"),
        tag("pre", group.body) if group.body else None,
        class_="text",
    )
    return row(
        f"{group.count:,}",
        tag("td", group.category, class_="word"),
        "" if group.status is None else str(group.status),
        message,
    )

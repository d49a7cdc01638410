"""`report.csv`: one row a stage, units in the headers, an empty cell for what is not known."""

from __future__ import annotations

import csv
import io

import msgspec

from headway.report.model import Report, StageReport

DURATIONS = (
    "lateness",
    "ttft",
    "ttfo",
    "latency",
    "response",
    "tpot",
    "chunk_gap",
    "stall",
    "pool_wait",
    "connect",
    "tls",
)
POINTS = ("count", "mean_s", "p50_s", "p75_s", "p90_s", "p95_s", "p99_s", "p999_s", "max_s")
FAILURE_POINTS = ("p50_s", "p90_s", "p95_s", "p99_s")

Cell = str | int | float | bool | None


def stage_row(stage: StageReport) -> dict[str, Cell]:
    """One stage, flattened; the keys are the headers and the same for every stage."""
    row: dict[str, Cell] = {
        "stage": stage.stage,
        "name": _text(stage.name),
        "loop": stage.loop,
        "verdict": stage.verdict.word,
        "verdict_words": " ".join(stage.verdict.words),
        "partial": stage.partial,
        "window_duration_s": stage.window.duration_s,
        **_numbers(stage.counts),
        **_numbers(stage.rates),
        "in_flight_mean": stage.concurrency.mean if stage.concurrency else None,
        "in_flight_max": stage.concurrency.max if stage.concurrency else None,
        "input_tokens_total": stage.tokens.input.total_tokens if stage.tokens.input else None,
        "output_tokens_total": stage.tokens.output.total_tokens if stage.tokens.output else None,
        "output_tokens_source": " ".join(sorted(stage.tokens.output_sources)) or None,
        "cached_input_share": stage.tokens.cached_share,
        "good": stage.goodput.good if stage.goodput else None,
        "good_share": stage.goodput.good_share if stage.goodput else None,
        "good_per_s": stage.goodput.good_per_s if stage.goodput else None,
    }
    for name in DURATIONS:
        summary = getattr(stage, name)
        row |= {f"{name}_{point}": getattr(summary, point, None) for point in POINTS}
    for name in ("ttft", "latency", "response"):
        points = getattr(stage.with_failures, name)
        row |= {
            f"{name}_with_failures_{point}": getattr(points, point, None)
            for point in FAILURE_POINTS
        }
    return row


def report_csv(report: Report) -> str:
    """All stages as CSV; empty for a run without stages."""
    rows = [stage_row(stage) for stage in report.stages]
    if not rows:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _text(text: str) -> str:
    # A spreadsheet runs a cell that begins like a formula; the quote makes it text there.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _numbers(struct: msgspec.Struct) -> dict[str, Cell]:
    return {name: getattr(struct, name) for name in struct.__struct_fields__}

"""`report.html`: one file that works offline, from a mail or a phone."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Any

from headway.report.floor import read_floor
from headway.report.html.markup import Markup, fragment, tag
from headway.report.html.numbers import MISSING, moment, ms, percent, plain
from headway.report.html.stage_charts import stage_charts
from headway.report.html.sweep_charts import sweep_charts
from headway.report.html.tables import (
    amounts_table,
    checks_table,
    chip,
    durations_table,
    errors_table,
    objectives_table,
    partial_chip,
    stages_table,
    table,
    text_row,
    verdict_tone,
)
from headway.report.model import Report, StageReport
from headway.report.search import search_finding
from headway.report.verdict import leading_findings

OPEN_STAGES = 3
"""A run of more stages shows them closed, since its tables and charts of all stages come first."""


def page(report: Report) -> str:
    """The whole document."""
    style, script = _asset("report.css"), _asset("report.js")
    body = fragment(_header(report), tag("main", report_body(report)))
    # Only these two may be applied or run: markup that got past the escaping could do nothing.
    return Template(_asset("report.html")).substitute(
        title=tag("title", f"{_subject(report)} · Headway"),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        body=body,
    )


def report_body(report: Report) -> Markup:
    """All that the report says, for a page that has its style and its script."""
    return fragment(
        _search(report),
        _verdict(report),
        _figures(report),
        _stages(report),
        sweep_charts(report),
        [_stage(stage, open_=len(report.stages) <= OPEN_STAGES) for stage in report.stages],
        _notes(report),
        _provenance(report),
        _definitions(),
    )


def _asset(name: str) -> str:
    return resources.files("headway.report").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _subject(report: Report) -> str:
    return report.run.model or report.run.target_url or report.run.run_id


def _header(report: Report) -> Markup:
    run = report.run
    facts = [run.target_url, run.backend, f"seed {run.seed}", f"run {run.run_id}"]
    facts.append(moment(run.created))
    labels = [
        tag("span", f"{key}: {value}", class_="label-chip") for key, value in run.labels.items()
    ]
    return tag(
        "header",
        tag("p", _mark(), "Headway load test", class_="brand"),
        tag("h1", _subject(report)),
        tag("p", [tag("span", fact) for fact in facts if fact], labels, class_="facts"),
    )


def _mark() -> Markup:
    """Five vehicles on their way, the gaps between them unequal."""
    ticks = [tag("rect", x=x, y=3, width=3, height=12, rx=1.5) for x in (0, 9, 14, 26, 31)]
    return tag("svg", ticks, viewBox="0 0 34 18", class_="brand-mark", aria_hidden="true")


def _verdict(report: Report) -> Markup:
    findings = [_finding(stage) for stage in report.counted if stage.verdict.words]
    if not report.complete:
        findings.append(tag("li", "The run is not complete: at least one stage is partial."))
    word = report.verdict if report.stages else "NOTHING MEASURED"
    return tag(
        "section",
        tag("h2", word, class_="verdict-word"),
        tag("p", _judgement(report)),
        tag("ul", findings) if findings else None,
        class_=f"verdict {verdict_tone(report.verdict) if report.stages else 'bad'}",
    )


def _search(report: Report) -> Markup:
    finding = search_finding(report)
    if finding is None:
        return fragment()
    found = "–" if finding.rate_per_s is None else f"{finding.rate_per_s:g} requests/s"
    return tag("section", tag("h2", f"Search: {found}"), tag("p", finding.text), id="search")


def _judgement(report: Report) -> str:
    count = len(report.counted)
    if not count:
        return "No stage was begun, so there is nothing to judge."
    if report.verdict == "VALID":
        many = f"all {count} stages" if count > 1 else "the stage"
        return f"Every check of {many} passed: these numbers can be trusted."
    if count == 1:
        return "These numbers cannot be taken as they stand."
    words = Counter(stage.verdict.word for stage in report.counted)
    said = ", ".join(f"{number} {word}" for word, number in words.most_common())
    return f"Of {count} stages: {said}."


def _finding(stage: StageReport) -> Markup:
    parts = [
        fragment(" ", chip(check.word), " ", check.text)
        for check in leading_findings(stage.verdict)
    ]
    return tag("li", tag("a", stage.name, href=f"#stage-{stage.stage}"), parts)


def _figures(report: Report) -> Markup:
    counted = report.counted
    if not counted:
        return fragment()
    figures = _run_figures(report) if len(counted) > 1 else _stage_figures(counted[0])
    boxes = [
        tag("div", tag("dt", name), tag("dd", value, tag("small", f" {unit}")))
        for name, value, unit in figures
        if value != MISSING
    ]
    return tag("dl", boxes, class_="figures")


def _run_figures(report: Report) -> Iterator[tuple[str, str, str]]:
    stages = report.counted
    ttfts = [stage.ttft.p50_s for stage in stages if stage.ttft]
    latencies = [stage.latency.p50_s for stage in stages if stage.latency]
    rates = [stage.rates.completed_per_s or 0.0 for stage in stages]
    tokens = [stage.rates.output_tokens_per_s or 0.0 for stage in stages]
    completed = sum(stage.counts.completed for stage in stages)
    errored = sum(stage.counts.errored for stage in stages)
    yield "Highest completed rate", plain(max(rates)), "requests/s"
    yield "Most output", plain(max(tokens) or None), "tokens/s"
    yield "Lowest median TTFT", ms(min(ttfts, default=None)), "ms"
    yield "Lowest median latency", ms(min(latencies, default=None)), "ms"
    yield "Completed", f"{completed:,}", "requests"
    yield "Failed", f"{errored:,}", "requests"


def _stage_figures(stage: StageReport) -> Iterator[tuple[str, str, str]]:
    yield "TTFT p50", ms(stage.ttft.p50_s if stage.ttft else None), "ms"
    yield "TTFT p99", ms(stage.ttft.p99_s if stage.ttft else None), "ms"
    yield "TPOT p50", ms(stage.tpot.p50_s if stage.tpot else None), "ms"
    yield "Latency p50", ms(stage.latency.p50_s if stage.latency else None), "ms"
    yield "Response p99", ms(stage.response.p99_s if stage.response else None), "ms"
    yield "Completed", plain(stage.rates.completed_per_s), "requests/s"
    yield "Output", plain(stage.rates.output_tokens_per_s), "tokens/s"
    yield "Failed", f"{stage.counts.errored:,}", "requests"
    yield "Goodput", percent(stage.goodput.good_share if stage.goodput else None), "good"


def _stages(report: Report) -> Markup:
    if not report.stages:
        return fragment()
    pale = any(
        summary and "p99" not in summary.trusted
        for stage in report.stages
        for summary in (stage.ttft, stage.latency)
    )
    note = tag("p", "Pale numbers rest on too few samples to be bounded.", class_="note")
    return tag("section", tag("h2", "Stages"), stages_table(report), note if pale else None)


def _stage(stage: StageReport, *, open_: bool) -> Markup:
    why = stage.ended_reason.replace("_", " ") if stage.ended_reason else "it was never ended"
    ended = f"Ended by: {why}" + (f" ({stage.ended_detail})" if stage.ended_detail else "")
    facts = [
        "open loop" if stage.loop == "open" else "closed loop",
        f"{stage.workers} load worker{'' if stage.workers == 1 else 's'}"
        if stage.workers
        else None,
        ended,
        f"began {moment(stage.started_wall)}" if stage.started_wall else None,
    ]
    summary = tag(
        "summary",
        tag("h2", stage.name),
        chip(stage.verdict.word),
        partial_chip(stage),
    )
    failed = [tag("li", check.text) for check in stage.verdict.checks if check.failed]
    return tag(
        "details",
        summary,
        tag("p", [tag("span", fact) for fact in facts if fact], class_="facts"),
        tag("ul", failed, class_="findings") if failed else None,
        durations_table(stage),
        stage_charts(stage),
        errors_table(stage),
        tag("div", amounts_table(stage), objectives_table(stage), class_="pair"),
        checks_table(stage),
        class_="stage",
        id=f"stage-{stage.stage}",
        open=open_,
    )


def _notes(report: Report) -> Markup:
    lines = [tag("li", tag("strong", note.topic), ": ", note.text) for note in report.notes]
    lines += [
        tag(
            "li",
            tag("strong", f"worker {lost.worker}"),
            f" died: {lost.cause}, {lost.lost_requests} requests lost",
        )
        for lost in report.workers_lost
    ]
    if not lines:
        return fragment()
    return tag("section", tag("h2", "Notes"), tag("ul", lines))


def _provenance(report: Report) -> Markup:
    floor = read_floor(report.calibration)
    floor_rows = []
    if floor is not None:
        floor_rows = [
            text_row("Client's own TTFT p50 (null server)", f"{ms(floor.ttft_p50_s)} ms"),
            text_row("Client's own latency p50", f"{ms(floor.latency_p50_s)} ms"),
            text_row("Client's highest rate", f"{plain(floor.max_requests_per_s)} requests/s"),
        ]
    rows = [text_row(name, value) for name, value in _flattened(report.run.provenance)]
    spec = [text_row(name, value) for name, value in _flattened(report.run.spec)]
    return tag(
        "section",
        tag("h2", "Where it comes from"),
        table("Provenance", ["What", "Value"], floor_rows + rows) if floor_rows + rows else None,
        tag(
            "details",
            tag("summary", "What was asked"),
            table("Specification", ["Field", "Value"], spec),
        )
        if spec
        else None,
    )


def _flattened(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """A nested JSON value as (dotted name, text) pairs; empty values are left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flattened(inner, f"{path}.{key}" if path else str(key))
    elif value not in (None, "", [], ()):
        text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        yield path, text


def _definitions() -> Markup:
    terms = (
        ("TTFT", "first token − sent; any channel: content, reasoning or tool call"),
        ("TTFO", "first content token − sent"),
        ("Service latency", "done − sent"),
        ("Response time", "done − due: what a user would have waited, lateness included"),
        ("Lateness", "sent − due"),
        ("TPOT", "(last token − first token) / (output tokens − 1), one value a request"),
        ("Chunk gap", "between successive reads that carried tokens, pooled; not per token"),
        ("Goodput", "requests that met every objective, timed from due, of all that were offered"),
        ("Percentiles", "nearest rank: always a value that was measured"),
    )
    items = [fragment(tag("dt", name), tag("dd", meaning)) for name, meaning in terms]
    return tag("section", tag("h2", "Definitions"), tag("dl", items, class_="definitions"))

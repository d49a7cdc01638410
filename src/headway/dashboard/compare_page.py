"""The page that holds one run against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from headway.compare.model import Comparison, MetricComparison, Refusal, Side, StageComparison
from headway.compare.terminal import change_text, metric_label, metric_value
from headway.dashboard.comparisons import Outcome
from headway.dashboard.job_parts import job_title
from headway.dashboard.layout import empty, heading, page
from headway.dashboard.reader import Reader
from headway.dashboard.runs import Run
from headway.dashboard.words import moment
from headway.report.html.markup import Child, Markup, tag
from headway.report.html.tables import table

_TONES = {"better": "good", "worse": "bad", "mixed": "fair", "cannot tell": "fair"}
_SENTENCES = {
    "better": "B is better than A where they differ.",
    "worse": "B is worse than A where they differ.",
    "mixed": "B is better than A in some numbers and worse in others.",
    "cannot tell": "Chance can explain every difference, or it is too small to matter.",
}


@dataclass(frozen=True)
class Choice:
    """What is compared: the ids of two jobs, empty where none was chosen."""

    a: str = ""
    b: str = ""
    allow_different: bool = False


def compare_page(
    runs: Sequence[Run],
    choice: Choice,
    outcome: Outcome | None,
    problem: str | None,
    reader: Reader,
) -> str:
    """The document.

    Args:
        runs: Those that can be compared, newest first.
        choice: Which two.
        outcome: How they compare; None: nothing was asked, or `problem`.
        problem: Why there is no outcome.
        reader: Who looks at it.
    """
    start = tag("a", "Start a run", href="/runs/new") if reader.may_run else None
    nothing = empty("Two runs are needed for a comparison.", start)
    return page(
        "Compare",
        "/compare",
        heading("Compare"),
        _form(runs, choice) if len(runs) > 1 else nothing,
        tag("p", problem, class_="problem") if problem else None,
        None if outcome is None else _outcome(outcome, choice),
        reader=reader,
    )


def _form(runs: Sequence[Run], choice: Choice) -> Markup:
    return tag(
        "form",
        _side("a", "A, the baseline", runs, choice.a),
        _side("b", "B, held against it", runs, choice.b),
        tag(
            "label",
            tag("input", type="checkbox", name="allow_different", value="yes",
                checked=choice.allow_different),
            " although more than the target differs",
            class_="check",
        ),
        tag("button", "Compare", class_="button primary"),
        action="/compare",
        method="get",
        class_="choose",
    )  # fmt: skip


def _side(name: str, label: str, runs: Sequence[Run], chosen: str) -> Markup:
    options = [tag("option", "Choose a run", value="")]
    options += [
        tag("option", _described(run), value=run.job.id, selected=run.job.id == chosen)
        for run in runs
    ]
    identity = f"choose-{name}"
    return tag(
        "div",
        tag("label", label, for_=identity),
        tag("select", options, id=identity, name=name),
        class_="field",
    )


def _described(run: Run) -> str:
    when = run.job.created_at.strftime("%m-%d %H:%M")
    word = run.result.verdict if run.result else "partial"
    return f"{job_title(run.job)} · {when} UTC · {word} · {run.job.id[-6:]}"


def _outcome(outcome: Outcome, choice: Choice) -> list[Markup]:
    sides = _sides((outcome.a, choice.a), (outcome.b, choice.b))
    if isinstance(outcome, Refusal):
        return [sides, _refused(outcome)]
    return [_word(outcome), sides, *[_stage(stage, outcome) for stage in outcome.stages]]


def _sides(*sides: tuple[Side, str]) -> Markup:
    rows = [
        tag(
            "tr",
            tag("th", name, scope="row"),
            tag("td", tag("a", side.run_id, href=f"/jobs/{job_id}")),
            tag("td", side.target_url),
            tag("td", side.model),
            tag("td", _moment(side.created)),
            tag("td", side.verdict),
        )
        for name, (side, job_id) in zip("AB", sides, strict=True)
    ]
    return table("What is compared", ("", "Run", "Target", "Model", "When", "Verdict"), rows)


def _moment(text: str | None) -> Child:
    try:
        return moment(datetime.fromisoformat(text or ""))
    except ValueError:
        return text


def _refused(refusal: Refusal) -> Markup:
    reasons = [tag("li", tag("b", one.what), ": ", one.text) for one in refusal.unlike]
    return tag(
        "section",
        tag("h2", "NOT COMPARABLE", class_="verdict-word"),
        tag("p", "More than the target differs, so a difference would say nothing about it."),
        tag("ul", reasons),
        class_="verdict bad",
    )


def _word(comparison: Comparison) -> Markup:
    notes = [f"{one.what} differs: {one.text}" for one in comparison.unlike]
    notes += comparison.cautions
    return tag(
        "section",
        tag("h2", comparison.word.upper(), class_="verdict-word"),
        tag("p", _SENTENCES[comparison.word]),
        tag("p", f"{comparison.comparisons} numbers were looked at by {comparison.method}, with"
            f" {comparison.confidence:.0%} confidence for all of them together.", class_="note"),
        tag("ul", [tag("li", note) for note in notes]) if notes else None,
        class_=f"verdict {_TONES[comparison.word]}",
        id="comparison",
    )  # fmt: skip


def _stage(stage: StageComparison, comparison: Comparison) -> Markup:
    interval = f"{comparison.confidence:.0%} interval"
    headers = ("Metric", "A", "B", "Change", interval, "B is", "Because")
    return tag(
        "section",
        tag("h2", stage.name, " ", _mark(stage.word)),
        [tag("p", caution, class_="note") for caution in stage.cautions],
        table("Changes are B's, measured from A.", headers, [_row(one) for one in stage.metrics]),
        class_="report comparison",
    )


def _row(metric: MetricComparison) -> Markup:
    name = metric.name
    cells: list[Child] = [
        metric_value(name, metric.a),
        metric_value(name, metric.b),
        change_text(metric, metric.change),
        _interval(metric),
    ]
    return tag(
        "tr",
        tag("th", metric_label(name), scope="row"),
        [tag("td", cell) for cell in cells],
        tag("td", _mark(metric.word), class_="left"),
        tag("td", metric.reason, class_="text"),
    )


def _interval(metric: MetricComparison) -> str:
    if metric.low is None or metric.high is None:
        return "–"
    return f"{change_text(metric, metric.low)} to {change_text(metric, metric.high)}"


def _mark(word: str) -> Markup:
    tone = "pale" if word == "cannot tell" else f"chip {_TONES[word]}"
    return tag("span", word, class_=tone)

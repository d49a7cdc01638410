"""The gate's answer as Markdown, for a CI page or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from headway.gate.model import GateCheck, GateReport

_MARKS = {"passed": "pass", "failed": "**FAIL**", "cannot tell": "cannot tell"}
_TITLES = {
    "measurement": "Measurement",
    "objective": "Objectives",
    "regression": "Against the baseline",
}


def markdown(report: GateReport) -> str:
    """A heading with the result, then a table for each kind of check."""
    lines = [f"## Headway gate: {report.result}", "", f"run `{_cell(report.run)}`"]
    if report.baseline is not None:
        lines[-1] += f", baseline `{_cell(report.baseline)}`"
    for kind, title in _TITLES.items():
        checks = [check for check in report.checks if check.kind == kind]
        if checks:
            lines += ["", f"### {title}", "", *_table(checks)]
    return "\n".join(lines) + "\n"


def _table(checks: list[GateCheck]) -> Iterator[str]:
    yield "| stage | check | result | finding |"
    yield "|---|---|---|---|"
    for check in checks:
        cells = (check.stage, check.name, _MARKS[check.status], check.text)
        yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    flat = " ".join(text.split())
    for found, replaced in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        flat = flat.replace(found, replaced)
    return flat

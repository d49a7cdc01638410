"""The gate's answer for a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.gate.model import GateReport

_STYLES = {"passed": "green", "failed": "bold red", "cannot tell": "yellow"}


def gate_view(report: GateReport) -> RenderableType:
    """A line for each check, and the result."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for header in ("stage", "check", "result", "finding"):
        table.add_column(header, no_wrap=header == "result")
    for check in report.checks:
        word = Text(check.status, style=_STYLES[check.status])
        table.add_row(Text(check.stage), Text(check.name), word, Text(check.text))
    result = Text("gate: ", style="bold")
    result.append(report.result, style="green" if report.result == "passed" else "bold red")
    return Group(table, Text(), result)

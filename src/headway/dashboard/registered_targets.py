"""The table of registered targets: what a workspace may measure, and how hard."""

from __future__ import annotations

from collections.abc import Sequence

from headway.report.html.markup import Child, Markup, fragment, tag
from headway.report.html.numbers import plain
from headway.report.html.tables import table
from headway.store.targets import TargetRow

_HEADERS = ("Target", "Address", "Most requests/s", "Most streams", "Lock group", "Key")


def registered_targets(targets: Sequence[TargetRow], *, may_run: bool) -> Markup | None:
    """The table; None: nothing is registered.

    Args:
        targets: Those of the reader's workspace.
        may_run: Whether the reader may begin runs.
    """
    if not targets:
        return None
    rows = [_row(target, may_run) for target in targets]
    return fragment(
        tag("h2", "Registered"),
        table("What administrators let this workspace measure.", _HEADERS, rows),
    )


def _row(target: TargetRow, may_run: bool) -> Markup:
    name: Child = target.name
    if may_run:
        name = tag("a", target.name, href=f"/runs/new?target={target.name}")
    cells: list[Child] = [
        target.url,
        plain(target.max_rate_per_s),
        plain(target.max_streams),
        target.lock_group,
        "the run's own" if target.secret is None else f"secret {target.secret}",
    ]
    return tag("tr", tag("th", name, scope="row"), [tag("td", cell) for cell in cells])

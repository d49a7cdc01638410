"""Reports: everything that is published of a run, made from its directory alone.

The names are imported when first used: load workers read `report.objectives` only, and should not
wait for the rest to load (a sixth of their start-up).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.report.files import write_reports
    from headway.report.model import Report, StageReport
    from headway.report.run import build, stage_summary

_HOMES = {
    "Report": "headway.report.model",
    "StageReport": "headway.report.model",
    "build": "headway.report.run",
    "stage_summary": "headway.report.run",
    "write_reports": "headway.report.files",
}

__all__ = ["Report", "StageReport", "build", "stage_summary", "write_reports"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)

"""The load engine: sends requests on an exact schedule and records what happened.

The names below are what library users need; `await run(spec, run_dir)` is the whole of it. They
are imported when first used, so that a worker process does not load what only the parent needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.load.facade import run, stream
    from headway.load.observer import LiveSnapshot, Observer
    from headway.load.results import RunResult, StageResult
    from headway.load.runner import Run
    from headway.load.spec import RunSpec
    from headway.load.stop_rules import Stop, StopRule

_HOMES = {
    "LiveSnapshot": "headway.load.observer",
    "Observer": "headway.load.observer",
    "Run": "headway.load.runner",
    "RunResult": "headway.load.results",
    "RunSpec": "headway.load.spec",
    "StageResult": "headway.load.results",
    "Stop": "headway.load.stop_rules",
    "StopRule": "headway.load.stop_rules",
    "run": "headway.load.facade",
    "stream": "headway.load.facade",
}

__all__ = [
    "LiveSnapshot",
    "Observer",
    "Run",
    "RunResult",
    "RunSpec",
    "StageResult",
    "Stop",
    "StopRule",
    "run",
    "stream",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)

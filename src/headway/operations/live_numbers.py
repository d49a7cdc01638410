"""A run's live snapshot as a job's progress, and back.

The progress of a job is a fraction, a line of text and named numbers; whoever watches the job, in a
terminal or a browser, makes the same view of it that a local run shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headway.load import LiveSnapshot

_FAILING = " – failing: "
_TEXTS = frozenset({"name", "top_error"})
_WHOLE = frozenset(
    {
        "stage", "stages", "streams", "max_requests", "sent", "completed", "errored", "cancelled",
        "in_flight",
    }
)  # fmt: skip


def message_of(snapshot: LiveSnapshot) -> str:
    """The stage's name, and its most frequent error where there is one."""
    if snapshot.top_error is None:
        return snapshot.name
    return f"{snapshot.name}{_FAILING}{snapshot.top_error}"


def numbers_of(snapshot: LiveSnapshot) -> dict[str, float]:
    """Every number of the snapshot by its name; what is not known is left out."""
    values = msgspec.structs.asdict(snapshot)
    return {
        name: float(value)
        for name, value in values.items()
        if name not in _TEXTS and value is not None
    }


def fraction_of(snapshot: LiveSnapshot) -> float:
    """How much of the whole run is behind us, stages counted alike."""
    return min(1.0, (snapshot.stage + (snapshot.fraction_done or 0.0)) / max(1, snapshot.stages))


def snapshot_of(message: str | None, numbers: Mapping[str, float]) -> LiveSnapshot | None:
    """The snapshot that a job's progress was made from; None: no stage runs."""
    if message is None or "stage" not in numbers:
        return None
    name, _, top_error = message.partition(_FAILING)
    values: dict[str, Any] = dict.fromkeys(LiveSnapshot.__struct_fields__)
    values |= {key: int(value) if key in _WHOLE else value for key, value in numbers.items()}
    values |= {"name": name, "top_error": top_error or None}
    values["is_draining"] = bool(values["is_draining"])
    # A newer server may tell more than this client knows.
    known = {key: values[key] for key in LiveSnapshot.__struct_fields__}
    return LiveSnapshot(**known)

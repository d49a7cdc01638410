"""Reading the history of progress that attempts leave in the state directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from headway.dispatch.progress_history import ProgressLine

MAX_POINTS = 2_000


def read_progress(path: Path) -> list[ProgressLine]:
    """The history of an attempt, at most `MAX_POINTS` of it, evenly thinned; the end is kept."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    whole = lines[:-1]  # behind the last newline is nothing, or a line that is being written
    step = -(-len(whole) // MAX_POINTS) or 1
    kept = whole[::-1][::step][::-1]
    return [line for text in kept if (line := _line(text)) is not None]


def _line(text: bytes) -> ProgressLine | None:
    try:
        return msgspec.json.decode(text, type=ProgressLine)
    except msgspec.DecodeError:
        return None  # cut by a full disk or a killed worker

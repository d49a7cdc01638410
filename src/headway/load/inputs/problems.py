"""Collects the lines of a file that cannot be used, and tells of them in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.core.errors import InputError
from headway.records.record import Note

NOTE_TOPIC = "inputs"
_KEPT_REASONS = 5
_KEPT_PLACES = 5


class RowError(ValueError):
    """A row cannot be used; the text says why."""


class GraphError(RowError):
    """The turns of a row do not fit together. It was written by hand or by a program that is wrong:
    to leave the row out, as one of a data set that cannot be read, would hide it.
    """


class Problems:
    """The unusable lines of one file: all are counted, the first of each kind are named."""

    def __init__(self, path: Path, unit: str = "line") -> None:
        self._path = path
        self._unit = unit
        self._places: dict[str, list[int]] = {}
        self.count = 0

    def add(self, place: int, reason: str) -> None:
        """Count one unusable line."""
        self.count += 1
        places = self._places.get(reason)
        if places is None:
            if len(self._places) >= _KEPT_REASONS:
                return
            places = self._places[reason] = []
        if len(places) < _KEPT_PLACES:
            places.append(place)

    def check(self, usable: int) -> None:
        """Refuse a file without content.

        Raises:
            InputError: nothing in it can be used.
        """
        if usable:
            return
        if not self.count:
            raise InputError(f"{self._path} is empty")
        raise InputError(
            f"{self._path} has no usable {self._unit}, all {self.count} were refused: "
            f"{self._text()}"
        )

    def notes(self, usable: int) -> tuple[Note, ...]:
        """What the reader of the run must know: some lines were left out."""
        if not self.count:
            return ()
        text = (
            f"{self.count} of {self.count + usable} {self._unit}s of {self._path.name} were left "
            f"out: {self._text()}"
        )
        data: dict[str, Any] = {"skipped": self.count, "used": usable, "first": self._places}
        return (Note(topic=NOTE_TOPIC, text=text, data=data),)

    def _text(self) -> str:
        kinds = [
            f"{self._unit} {', '.join(map(str, places))}: {reason}"
            for reason, places in self._places.items()
        ]
        named = sum(map(len, self._places.values()))
        return "; ".join(kinds) + ("; ..." if self.count > named else "")

"""Writes a run down as it happens: records as workers encoded them, events, and the parent's own.

The parent writes a record itself only for requests that no worker can account for any more: lost
with their worker, or due before the end and never handed out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from headway.load.messages import RequestUpdate
from headway.load.observer import Observer
from headway.records.record import RequestRecord, RunEvent, StageStarted
from headway.records.run_dir import RunDirectory


class Journal:
    """The one writer of a run directory's records and events, and the observer's source."""

    def __init__(self, directory: RunDirectory, observer: Observer) -> None:
        self._directory = directory
        self._observer = observer
        self._encoder = msgspec.json.Encoder()

    @property
    def observer(self) -> Observer:
        """Whoever watches the run."""
        return self._observer

    def records(self, lines: bytes) -> None:
        """Records as a worker encoded them."""
        if lines:
            self._directory.append_records(lines)

    def own_records(self, records: Sequence[RequestRecord]) -> None:
        """Records that the parent writes for requests without a worker."""
        self.records(b"".join(self._encoder.encode(record) + b"\n" for record in records))

    def event(self, event: RunEvent) -> None:
        """Append an event and tell the observer."""
        self._directory.append_event(event)
        self._observer.event(event)
        if isinstance(event, StageStarted):
            self._observer.stage_started(event)

    def updates(self, updates: Sequence[RequestUpdate]) -> None:
        """Pass on the changes of single requests."""
        if updates:
            self._observer.requests(updates)

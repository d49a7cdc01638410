"""Failures grouped by cause."""

from __future__ import annotations

import msgspec

from headway.core.clock import NS_PER_S
from headway.records.record import Failure, RequestRecord
from headway.report.model import ErrorGroup

MAX_GROUPS = 100
"""A target that puts something unique into every message must not fill memory or the report."""

REST = "causes beyond the first 100 kinds, taken together"


class FailureGroups:
    """Counts failures by category, status and message, keeping the first example of each."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, int | None, str], ErrorGroup] = {}

    def add(self, record: RequestRecord) -> None:
        """Count the failure of an errored record."""
        failure = record.failure or Failure("backend", "no cause was recorded")
        key = (failure.category, failure.status, failure.message)
        if key not in self._groups and len(self._groups) >= MAX_GROUPS:
            key = ("backend", None, REST)
            failure = Failure("backend", REST)
        seen = self._groups.get(key)
        self._groups[key] = _again(seen) if seen else _first(record, failure)

    def ranked(self) -> list[ErrorGroup]:
        """All groups, the most frequent first."""
        return sorted(self._groups.values(), key=lambda group: (-group.count, group.first_at_s))


def _first(record: RequestRecord, failure: Failure) -> ErrorGroup:
    at_ns = record.due_ns if record.done_ns is None else record.done_ns
    return ErrorGroup(
        category=failure.category,
        status=failure.status,
        message=failure.message,
        count=1,
        first_at_s=at_ns / NS_PER_S,
        first_index=record.index,
        first_turn=record.turn,
        first_worker=record.worker,
        body=failure.body,
    )


def _again(group: ErrorGroup) -> ErrorGroup:
    return msgspec.structs.replace(group, count=group.count + 1)

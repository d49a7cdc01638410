"""What is collected of one stage while its records are read once."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from functools import cached_property

from headway.core.clock import NS_PER_S
from headway.records.record import (
    RequestRecord,
    StageEnded,
    StageStarted,
    WorkerDied,
    WorkerSample,
)
from headway.report.columns import Columns
from headway.report.failures import FailureGroups
from headway.report.gaps import GapHistogram
from headway.report.window import first_due_ns, last_due_ns

_FLUSH_AT = 1024
"""Records kept as objects before they become rows."""


class StageData:
    """Collects one stage's records. Its events must all be known before the first record."""

    def __init__(self, stage: int) -> None:
        self.stage = stage
        self.started: StageStarted | None = None
        self.ended: StageEnded | None = None
        self.samples: list[WorkerSample] = []
        self.deaths: list[WorkerDied] = []
        self.columns = Columns()
        self.failures = FailureGroups()
        self.gaps = GapHistogram()
        self.pool_wait_s = array("d")
        self.connect_s = array("d")
        self.tls_s = array("d")
        self.sources: Counter[str] = Counter()
        self.cached_tokens = 0
        self.cacheable_tokens = 0
        self.resent = 0
        self.reuse: Counter[bool] = Counter()
        self.duplicates = 0
        self.first_turns = 0
        self._pending: list[RequestRecord] = []
        self._seen = bytearray()
        self._seen_turns: set[tuple[int, int]] = set()

    def add(self, record: RequestRecord) -> None:
        """Count one record; a repeated one is only counted as such (trap 35)."""
        if self._is_repeated(record.index, record.turn):
            self.duplicates += 1
            return
        self.first_turns += record.turn == 0
        self._pending.append(record)
        if len(self._pending) >= _FLUSH_AT:
            self.flush()
        if record.status == "errored":
            self.failures.add(record)
        first, last = self._due_bounds_ns
        if first <= record.due_ns <= last:
            self._add_measured(record)

    def flush(self) -> None:
        """Move what was added into the columns; to be called before they are read."""
        self.columns.extend(self._pending)
        self._pending.clear()

    def _add_measured(self, record: RequestRecord) -> None:
        if record.gaps_ns and record.status == "completed":
            self.gaps.add(record.gaps_ns)
        self._add_waits(record)
        self.resent += record.resent
        if record.connection_reused is not None:
            self.reuse[record.connection_reused] += 1
        if record.status == "completed" and record.output_tokens is not None:
            self.sources[record.output_tokens_source or "usage"] += 1
        if record.cached_tokens is not None and record.input_tokens and record.turn == 0:
            self.cached_tokens += record.cached_tokens
            self.cacheable_tokens += record.input_tokens

    def _add_waits(self, record: RequestRecord) -> None:
        if record.pool_wait_ns is not None:
            self.pool_wait_s.append(record.pool_wait_ns / NS_PER_S)
        if record.connect_ns is not None:
            self.connect_s.append(record.connect_ns / NS_PER_S)
        if record.tls_ns is not None:
            self.tls_s.append(record.tls_ns / NS_PER_S)

    @cached_property
    def _due_bounds_ns(self) -> tuple[int, float]:
        last = last_due_ns(self.started, self.ended)
        return first_due_ns(self.started), math.inf if last is None else last

    def _is_repeated(self, index: int, turn: int) -> bool:
        if turn:
            known = (index, turn) in self._seen_turns
            self._seen_turns.add((index, turn))
            return known
        if index >= len(self._seen):
            self._seen.extend(bytes(index + 1 - len(self._seen) + 4096))
        known = bool(self._seen[index])
        self._seen[index] = 1
        return known

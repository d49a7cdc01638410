"""One stage's records as columns of numbers: what a million requests cost 100 MiB to keep."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import compress

from headway.records.record import RequestRecord, Status

MISSING = -(2**63)
"""Stands for None in a column: no time and no count is ever this low."""

STATUS_CODES: dict[Status, int] = {"completed": 0, "errored": 1, "cancelled": 2}
COMPLETED, ERRORED, CANCELLED = 0, 1, 2


class Columns:
    """Parallel columns, one row a request. Times are nanoseconds since the stage's start."""

    NAMES = (
        "due",
        "sent",
        "first_token",
        "first_content",
        "last_token",
        "done",
        "stall",
        "input_tokens",
        "output_tokens",
    )

    def __init__(self) -> None:
        self.status = array("b")
        self.due = array("q")
        self.sent = array("q")
        self.first_token = array("q")
        self.first_content = array("q")
        self.last_token = array("q")
        self.done = array("q")
        self.stall = array("q")
        """The largest chunk gap of the request."""
        self.input_tokens = array("q")
        self.output_tokens = array("q")

    def __len__(self) -> int:
        return len(self.status)

    def extend(self, records: Iterable[RequestRecord]) -> None:
        """Append requests; many at a time cost half of one by one."""
        rows = [_row(record) for record in records]
        columns = (self.status, *(getattr(self, name) for name in self.NAMES))
        for column, values in zip(columns, zip(*rows, strict=True), strict=bool(rows)):
            column.extend(values)

    def only(self, keep: Iterable[bool]) -> Columns:
        """The rows for which `keep` is true, as new columns."""
        mask = list(keep)
        if all(mask):
            return self
        part = Columns()
        part.status.extend(compress(self.status, mask))
        for name in self.NAMES:
            getattr(part, name).extend(compress(getattr(self, name), mask))
        return part

    def completed(self) -> Columns:
        """The rows of requests that completed."""
        return self.only(status == COMPLETED for status in self.status)

    def latest_ns(self) -> int:
        """The latest time that any row tells of; 0 when there is none."""
        columns = (self.due, self.sent, self.done)
        return max((max(column) for column in columns if len(column)), default=0)


def _row(record: RequestRecord) -> tuple[int, ...]:
    sent, first, content = record.sent_ns, record.first_token_ns, record.first_content_ns
    last, done = record.last_token_ns, record.done_ns
    inputs, outputs = record.input_tokens, record.output_tokens
    # Written out: a helper called for each of eight fields is a third of all reading time.
    return (
        STATUS_CODES[record.status],
        record.due_ns,
        MISSING if sent is None else sent,
        MISSING if first is None else first,
        MISSING if content is None else content,
        MISSING if last is None else last,
        MISSING if done is None else done,
        max(record.gaps_ns) if record.gaps_ns else MISSING,
        MISSING if inputs is None else inputs,
        MISSING if outputs is None else outputs,
    )

"""Whether a request met the run's objectives, told while it runs.

The report decides the same from the records (`report.goodput`); this is for stop rules, which
cannot wait for it. A test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable

from headway.core.clock import NS_PER_S
from headway.records.record import RequestRecord
from headway.report.objectives import ObjectiveSpec

Judge = Callable[[RequestRecord], bool]


def judge_for(objectives: ObjectiveSpec) -> Judge | None:
    """Says of a record whether it met every objective; None: there are none."""
    if not objectives.are_set:
        return None
    from_due = [
        (name, limit_s * NS_PER_S)
        for name, limit_s in (
            ("first_token_ns", objectives.ttft_s),
            ("done_ns", objectives.latency_s),
            ("done_ns", objectives.response_s),
        )
        if limit_s is not None
    ]
    tpot_ns = None if objectives.tpot_s is None else objectives.tpot_s * NS_PER_S

    def is_good(record: RequestRecord) -> bool:
        if record.status != "completed":
            return False
        for name, limit_ns in from_due:
            at_ns = getattr(record, name)
            if at_ns is None or at_ns - record.due_ns > limit_ns:
                return False
        return tpot_ns is None or _meets_tpot(record, tpot_ns)

    return is_good


def _meets_tpot(record: RequestRecord, limit_ns: float) -> bool:
    first, last, tokens = record.first_token_ns, record.last_token_ns, record.output_tokens
    if first is None or last is None or tokens is None or tokens < 2:
        return False  # Undefined is not good (trap 45).
    return (last - first) / (tokens - 1) <= limit_ns

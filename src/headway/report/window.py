"""The part of a stage that its numbers are made of: one cut by time, for every number alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.core.clock import NS_PER_S, ns_from_s
from headway.records.record import StageEnded, StageStarted
from headway.report.columns import MISSING, Columns
from headway.report.model import Window

EndBasis = Literal["sending_ended", "stage_ended", "last_record"]


@dataclass(frozen=True)
class MeasuredWindow:
    """From the end of the warm-up to the start of the cool-down, both ends included.

    A request belongs to it when it was due in it; an event (a completion, a token) when it happened
    in it. Numerators and denominators use the same two ends (trap 45).
    """

    start_ns: int
    end_ns: int
    basis: EndBasis

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns

    def holds(self, at_ns: int) -> bool:
        """Whether a moment lies in it; an unknown moment does not."""
        return self.start_ns <= at_ns <= self.end_ns

    def per_s(self, amount: float) -> float | None:
        """An amount per second of the window; None when the window is empty."""
        return amount * NS_PER_S / self.duration_ns if self.duration_ns else None

    def published(self) -> Window:
        """The window as the report shows it."""
        return Window(
            start_s=self.start_ns / NS_PER_S,
            end_s=self.end_ns / NS_PER_S,
            duration_s=self.duration_ns / NS_PER_S,
            end_basis=self.basis,
        )


def last_due_ns(started: StageStarted | None, ended: StageEnded | None) -> int | None:
    """The latest due time that belongs to the window; None: the stage was never ended."""
    if ended is None:
        return None
    cooldown_s = started.planned_cooldown_s if started else 0.0
    return ended.sending_ended_ns - ns_from_s(cooldown_s)


def first_due_ns(started: StageStarted | None) -> int:
    """The earliest due time that belongs to the window."""
    return ns_from_s(started.planned_warmup_s) if started else 0


def measured_window(
    started: StageStarted | None, ended: StageEnded | None, columns: Columns
) -> MeasuredWindow:
    """Decide the window over which events are counted.

    It ends when sending ends, less the cool-down: what drains afterwards was not under the load
    that is measured. Only when nothing at all had completed by then (a burst, sent at once) does
    it reach to the end of the stage, since a rate over no time says nothing.
    """
    start = first_due_ns(started)
    end = last_due_ns(started, ended)
    basis: EndBasis = "sending_ended"
    if ended is None or end is None:
        end, basis = columns.latest_ns(), "last_record"
    elif not any(start <= done <= end for done in columns.done if done != MISSING) and len(columns):
        cut = ended.sending_ended_ns - end
        end, basis = max(end, ended.at_ns - cut), "stage_ended"
    return MeasuredWindow(start, max(start, end), basis)

"""The client's own floor: what it measures when the server takes no time (N3)."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.report.model import StageReport


class Floor(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A stage against a null server at the same shape, reduced to what bounds the client.

    It is stored as `calibration` in `run.json`. Null: not measured.
    """

    requests: int
    duration_s: float
    ttft_p50_s: float | None = None
    ttft_p99_s: float | None = None
    latency_p50_s: float | None = None
    latency_p99_s: float | None = None
    lateness_p50_s: float | None = None
    lateness_p99_s: float | None = None
    max_requests_per_s: float | None = None
    """The highest rate that the workers reached, where the calibration drove them to it."""


def floor_of(stage: StageReport, saturated: bool = False) -> Floor:
    """Reduce a stage that ran against the null server.

    Args:
        stage: Its report.
        saturated: Whether it sent as fast as it could, so that its rate is the client's highest.
    """
    ttft, latency, lateness = stage.ttft, stage.latency, stage.lateness
    return Floor(
        requests=stage.counts.completed,
        duration_s=stage.window.duration_s,
        ttft_p50_s=ttft.p50_s if ttft else None,
        ttft_p99_s=ttft.p99_s if ttft else None,
        latency_p50_s=latency.p50_s if latency else None,
        latency_p99_s=latency.p99_s if latency else None,
        lateness_p50_s=lateness.p50_s if lateness else None,
        lateness_p99_s=lateness.p99_s if lateness else None,
        max_requests_per_s=stage.rates.completed_per_s if saturated else None,
    )


def read_floor(calibration: dict[str, Any] | None) -> Floor | None:
    """The floor kept in `run.json`; None when there is none or it is of another shape."""
    if calibration is None:
        return None
    try:
        return msgspec.convert(calibration, Floor)
    except msgspec.ValidationError:
        return None

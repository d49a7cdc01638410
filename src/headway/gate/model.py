"""What a gate found, as values: made into a table, JUnit XML, Markdown or an exit code."""

from __future__ import annotations

from typing import Literal

import msgspec

from headway.compare.model import Comparison, Refusal

GATE_SCHEMA_VERSION = 1

Status = Literal["passed", "failed", "cannot tell"]
Result = Literal[
    "passed", "invalid measurement", "objective missed", "regression", "cannot tell",
    "not comparable",
]  # fmt: skip


class GateCheck(msgspec.Struct, kw_only=True, frozen=True):
    """One question put to a stage, and its answer."""

    kind: Literal["measurement", "objective", "regression"]
    stage: str
    name: str
    """The objective as written, or the metric."""
    status: Status
    text: str
    """The finding in one sentence."""
    value: float | None = None


class GateReport(msgspec.Struct, kw_only=True, frozen=True):
    """The gate's answer with all that it rests on."""

    schema_version: int = GATE_SCHEMA_VERSION
    run: str
    baseline: str | None
    result: Result
    """The first that holds of: invalid measurement, objective missed, not comparable, regression,
    cannot tell (strict gates only), passed."""
    checks: list[GateCheck]
    comparison: Comparison | Refusal | None

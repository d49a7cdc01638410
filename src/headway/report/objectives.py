"""What a request must meet to count as good."""

from __future__ import annotations

from pydantic import Field

from headway.core.spec import SpecModel


class ObjectiveSpec(SpecModel):
    """What a request must meet to count as good. None: not asked. All in seconds."""

    ttft_s: float | None = Field(default=None, gt=0)
    tpot_s: float | None = Field(default=None, gt=0)
    latency_s: float | None = Field(default=None, gt=0)
    response_s: float | None = Field(default=None, gt=0)

    @property
    def are_set(self) -> bool:
        """Whether anything is asked."""
        return self != ObjectiveSpec()

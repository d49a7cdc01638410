"""The base of every description that a user writes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecModel(BaseModel):
    """Common settings: unknown fields are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

"""The base of every description that a user writes."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class SpecModel(BaseModel):
    """Common settings: unknown fields are errors, values do not change.

    A validator is built when it is first used: most descriptions are only parts of a RunSpec,
    which has its own. That is a quarter of the time that loading the specs takes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

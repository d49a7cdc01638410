"""Operations with rich inputs that end at once, for tests of the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from headway.jobs import JobContext, operation


class Precision(StrEnum):
    FULL = "full"
    HALF = "half"


class Stage(BaseModel):
    rate_per_s: Annotated[float, Field(gt=0, le=1e6)]
    name: Annotated[str, Field(min_length=1, max_length=20)] = "stage"


class Plan(BaseModel):
    """A nested input with every kind of constraint."""

    stages: Annotated[list[Stage], Field(min_length=1, max_length=3)]
    precision: Precision = Precision.FULL
    start: datetime | None = None
    weights: dict[str, int] = {}


class Settings(BaseModel):
    depth: int = 1


@operation(lane="short", config=Settings)
def plan(job: JobContext, request: Plan) -> Plan:
    """Answer with the plan."""
    return request


@operation(lane="inline")
async def nothing(job: JobContext) -> None:
    """Take nothing, answer nothing."""

"""Limits, locks and the use of a server, as they go over the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from headway.client.models import ShortText

MAX_JOBS = 10**9


class LimitRequest(BaseModel):
    """A limit as it shall be; a field that is left out says nothing, and the more general holds.

    Attributes:
        max_running: Jobs that may run at a time; 0 lets none start.
        max_queued: Jobs that may wait; more are refused with status 429.
        weight: The share in proportion to other workspaces'; only of a workspace.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_running: Annotated[int | None, Field(ge=0, le=MAX_JOBS, strict=True)] = None
    max_queued: Annotated[int | None, Field(ge=0, le=MAX_JOBS, strict=True)] = None
    weight: Annotated[float | None, Field(ge=0.001, le=1000, strict=True)] = None


class Limit(BaseModel):
    """A limit that was set; `*` stands for each workspace or user that has none of its own.

    Attributes:
        user: Null: the limit is the workspace's as a whole.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    workspace: str
    user: str | None = None
    max_running: int | None = None
    max_queued: int | None = None
    weight: float | None = None


class Use(BaseModel):
    """What a user runs and has waiting in a workspace now."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    workspace: str
    user: str
    running: int
    waiting: int


class LimitPage(BaseModel):
    """The limits that hold for the workspace, and what it uses; all, for an administrator.

    Attributes:
        max_queued: Jobs of all workspaces together that may wait on this server; null: any number.
        max_queued_bytes: What may have been submitted with these; null: any number.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    limits: list[Limit]
    use: list[Use]
    max_queued: int | None = None
    max_queued_bytes: int | None = None


class LockRequest(BaseModel):
    """A lock as it shall be.

    Attributes:
        max_running: Jobs that may hold it at a time.
        members: Concurrency keys whose jobs need it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ShortText
    max_running: Annotated[int, Field(ge=1, le=MAX_JOBS, strict=True)] = 1
    members: Annotated[list[ShortText], Field(max_length=1000)] = []


class Lock(BaseModel):
    """A lock that an administrator has set up."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    max_running: int
    members: list[str]


class LockList(BaseModel):
    """Every lock, by name."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    locks: list[Lock]

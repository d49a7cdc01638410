"""What goes over the wire about secrets, targets and overlays."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints

from headway.client.models import MAX_ENV_VARIABLES, EnvName, LongText, ShortText

MAX_SECRET_CHARS = 32 * 1024

ProvisionName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")
]
"""Of a secret or a target: it stands in paths, command lines and key files."""
Reach = Literal["public", "private", "loopback"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SecretRequest(_Request):
    """A secret's value; no answer ever holds one."""

    value: Annotated[str, Field(max_length=MAX_SECRET_CHARS, repr=False)]


class Secret(_Answer):
    """What may be known of a secret.

    Attributes:
        changed_at, changed_by: When its value was set last, and by whom.
    """

    name: str
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str


class SecretList(_Answer):
    """The secrets of a workspace, by name."""

    secrets: list[Secret]


class Rotation(_Answer):
    """What a rotation of the keys did."""

    resealed: int


class TargetRequest(_Request):
    """A target as an administrator registers it.

    Attributes:
        url: `http://host:port`, with a path where only what lies below it is to be measured.
        workspaces: Who may measure it.
        max_rate_per_s: Most requests a second that a load profile may ask for.
        max_streams: Most requests in flight that it may ask for.
        lock_group: Targets of one group, which share a GPU, are measured one at a time; by default
            each target is a group of its own.
        health_path: Asked before a run begins; any answer below 500 will do.
        secret: Name of the secret, in the workspace of the job, that is the API key when a run
            names no other.
        reach: Where its addresses may lie; by default where they lie now.
    """

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    workspaces: Annotated[list[ShortText], Field(min_length=1, max_length=1000)]
    max_rate_per_s: Annotated[float | None, Field(gt=0, le=1_000_000, strict=True)] = None
    max_streams: Annotated[int | None, Field(ge=1, le=100_000, strict=True)] = None
    lock_group: ProvisionName | None = None
    health_path: Annotated[str, Field(min_length=1, max_length=500, pattern=r"^/")] = "/health"
    secret: ProvisionName | None = None
    reach: Reach | None = None


class Target(_Answer):
    """A registered target.

    Attributes:
        workspaces: Those that the caller may know of.
    """

    name: str
    url: str
    reach: Reach
    workspaces: list[str]
    max_rate_per_s: float | None = None
    max_streams: int | None = None
    lock_group: str
    health_path: str
    secret: str | None = None
    changed_at: datetime
    changed_by: str


class TargetList(_Answer):
    """The targets that the caller may measure, or, for an administrator, all; by name."""

    targets: list[Target]


class OverlayRequest(_Request):
    """What a workspace gives to all of its jobs.

    Attributes:
        env: Environment variables, within the operator's allow-list.
        config: Configuration by operation.
    """

    env: Annotated[dict[EnvName, LongText], Field(max_length=MAX_ENV_VARIABLES)] = {}
    config: Annotated[dict[ShortText, dict[ShortText, JsonValue]], Field(max_length=100)] = {}


class Overlay(_Answer):
    """The overlay of a workspace as it is; secrets have no place in it."""

    workspace: str
    env: dict[str, str] = {}
    config: dict[str, dict[str, JsonValue]] = {}
    changed_at: datetime | None = None
    changed_by: str | None = None

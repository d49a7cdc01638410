"""Accounts, as they go over the wire."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

MAX_LIFE_S = 10 * 365 * 86400.0

# As headway.access.accounts.NAME_PATTERN has it; a test compares them.
_NAME = r"^[a-z0-9][a-z0-9._@-]{0,63}$"


def _said_in_words(name: Any) -> Any:
    """A wrong name is told in words; the pattern stands in the schema."""
    if isinstance(name, str) and re.match(_NAME, name) is None:
        raise PydanticCustomError(
            "name",
            "a name is at most 64 small letters, digits and . _ @ -, and begins with a letter or"
            " a digit",
        )
    return name


AccountName = Annotated[
    str,
    StringConstraints(pattern=_NAME, min_length=1, max_length=64),
    BeforeValidator(_said_in_words),
]
MemberRole = Literal["viewer", "user", "admin"]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Membership(_Answer):
    """A workspace that the caller is in, and as what."""

    workspace: str
    role: MemberRole


class Me(_Answer):
    """Whom the server takes the caller for.

    Attributes:
        workspace: The one this request is in; null when it names none of several, or there is none.
        role: In that workspace.
        via: `local` (a server without accounts), `token` or `session`.
        token_id: The public part of the token that was shown.
        workspaces: All that the caller may name.
    """

    user: str
    workspace: str | None
    role: MemberRole | None
    administrator: bool
    via: str
    token_id: str | None = None
    expires_at: datetime | None = None
    workspaces: list[Membership]


class NewUser(_Request):
    """An account to be made.

    Attributes:
        returning: The name may be that of a removed user, who comes back.
    """

    name: AccountName
    administrator: bool = False
    returning: bool = False


class Administrator(_Request):
    """Whether a user manages the server."""

    administrator: bool


class User(_Answer):
    """A person's account."""

    name: str
    administrator: bool
    created_at: datetime
    created_by: str


class UserList(_Answer):
    """Every account, by name."""

    users: list[User]


class NewWorkspace(_Request):
    """A workspace to be made."""

    name: AccountName


class Workspace(_Answer):
    """A place whose jobs only its members see."""

    name: str
    created_at: datetime
    created_by: str


class WorkspaceList(_Answer):
    """The workspaces that the caller is in, by name."""

    workspaces: list[Workspace]


class NewRole(_Request):
    """The role that a member is to have."""

    role: MemberRole


class Member(_Answer):
    """A user in a workspace."""

    workspace: str
    user: str
    role: MemberRole


class MemberList(_Answer):
    """The members of a workspace, by name."""

    members: list[Member]


class _NewToken(_Request):
    """What every new token has: a label, and perhaps an end."""

    label: AccountName
    expires_in_s: Annotated[float | None, Field(gt=0, le=MAX_LIFE_S)] = None


class NewServiceToken(_NewToken):
    """A token of a workspace, for pipelines; it acts as `service:LABEL`."""

    role: Literal["viewer", "user"] = "user"


class NewToken(_NewToken):
    """A token that speaks for a user.

    Attributes:
        user: Whom for; others than oneself only for administrators.
        workspace: Good only there.
        role: At most this, wherever the user is.
        metrics: Not a user's at all: reads `/metrics` and nothing else. For administrators.
    """

    user: AccountName | None = None
    workspace: AccountName | None = None
    role: MemberRole | None = None
    metrics: bool = False


class Token(_Answer):
    """A token without anything of its secret."""

    id: str
    kind: Literal["personal", "service", "metrics", "session", "link"]
    label: str
    user: str | None = None
    workspace: str | None = None
    role: MemberRole | None = None
    created_at: datetime
    created_by: str
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None


class IssuedToken(_Answer):
    """A new token; `token` is shown this once and kept nowhere."""

    token: str = Field(repr=False)
    about: Token


class TokenList(_Answer):
    """Tokens, oldest first."""

    tokens: list[Token]


class AuditLine(_Answer):
    """Something that was done, or denied `count` times.

    Attributes:
        number: Ascends; a page goes on before the last number of the page before.
    """

    number: int
    at: datetime
    user: str
    via: str
    token_id: str | None = None
    address: str | None = None
    workspace: str | None = None
    action: str
    subject: str
    detail: dict[str, str] = {}
    count: int = 1


class AuditPage(_Answer):
    """A page of the audit log, newest first."""

    lines: list[AuditLine]
    next_before: int | None = None

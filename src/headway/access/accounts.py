"""Users, workspaces, members, tokens, and what is noted of administrative acts: plain values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

import msgspec

from headway.access.identity import LOCAL_USER, SYSTEM_USER, Identity, Via
from headway.access.roles import Role

NAME_PATTERN = r"[a-z0-9][a-z0-9._@-]{0,63}"
"""Names of users, workspaces and service tokens: short, and the same however they are typed."""
RESERVED_NAMES = frozenset({LOCAL_USER, SYSTEM_USER})
SERVICE_PREFIX = "service:"


class TokenKind(StrEnum):
    """What a token is for."""

    PERSONAL = "personal"
    """Speaks for a user."""
    SERVICE = "service"
    """Belongs to a workspace; for pipelines."""
    METRICS = "metrics"
    """Reads `/metrics`, nothing else."""
    SESSION = "session"
    """A browser's, in a cookie; never good as a bearer token."""
    LINK = "link"
    """Begins a session, once; never good as a bearer token."""


class User(msgspec.Struct, frozen=True, kw_only=True):
    """A person's account; `administrator` is server-wide."""

    name: str
    administrator: bool
    created_at: datetime
    created_by: str


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A place whose jobs only its members see."""

    name: str
    created_at: datetime
    created_by: str


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A user in a workspace."""

    workspace: str
    user: str
    role: Role


class NewToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token to be stored.

    Attributes:
        label: What it is called; a service token's is the name it acts under.
        user: Whom it speaks for; None for service and metrics tokens.
        workspace: A service token's own; for others the only one it is good for, or None.
        role: A service token's role; for others the most it may be, or None.
        parent: Revoking that token revokes this one.
        expires_at: None: it does not expire.
    """

    id: str
    secret_hash: bytes
    kind: TokenKind
    label: str
    user: str | None = None
    workspace: str | None = None
    role: Role | None = None
    parent: str | None = None
    expires_at: datetime | None = None


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A stored token, as it is shown: without anything of its secret."""

    id: str
    kind: TokenKind
    label: str
    created_at: datetime
    created_by: str
    user: str | None = None
    workspace: str | None = None
    role: Role | None = None
    parent: str | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    def is_live(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that authentication needs to know of a token.

    Attributes:
        administrator: Its user manages the server.
        roles: Its user's workspaces; for an administrator every one there is.
    """

    token: Token
    secret_hash: bytes
    administrator: bool
    roles: Mapping[str, Role]

    def identity(self, workspace: str, via: Via) -> Identity:
        """Who the token makes its bearer, in one of its workspaces (or in none: an empty name)."""
        token = self.token
        user = token.user or f"{token.kind}:{token.label}"
        limited = token.workspace is not None or token.role is not None
        return Identity(
            user=user,
            workspace=workspace,
            role=self.workspaces.get(workspace, Role.NONE),
            administrator=self.administrator and not limited,
            via=via,
            token_id=token.id,
            scraper=token.kind is TokenKind.METRICS,
        )

    @property
    def workspaces(self) -> Mapping[str, Role]:
        """Where the token is good, and for what: the token's own limits are kept to."""
        token = self.token
        if token.kind is TokenKind.SERVICE and token.workspace and token.role:
            return {token.workspace: token.role}
        return {
            name: role.capped(token.role)
            for name, role in self.roles.items()
            if token.workspace in (None, name)
        }


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """Who does something that is noted in the audit log, and from where.

    Attributes:
        address: The client's, when there is one.
    """

    user: str
    via: str
    token_id: str | None = None
    address: str | None = None


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something to note: an administrative act, or a call that was denied.

    Attributes:
        act: By whom.
        action: In one word or two: `user.add`, `token.revoke`, `denied`.
        subject: What it was done to.
        workspace: Where, when it belongs to one.
        detail: Whatever else tells the story; never a secret.
        count: How often, for denials, which are counted and not written each.
    """

    act: Act
    action: str
    subject: str = ""
    workspace: str | None = None
    detail: Mapping[str, str] = {}
    count: int = 1


DENIED = "denied"
"""The action of calls that were refused."""


class AuditRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the audit log; `number` ascends."""

    number: int
    at: datetime
    event: AuditEvent


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """There is no such user, workspace, member or token."""

    what: str
    name: str


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The name belongs to another, or did: names of deleted workspaces are not given out again."""

    what: str
    name: str


class WasRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """The name was that of a removed user, whose jobs and lines of the audit log bear it."""

    name: str
    removed_at: datetime


class LastAdministrator(msgspec.Struct, frozen=True, kw_only=True):
    """Without this one nobody could manage the server."""

    name: str

"""Accounts as the API shows them."""

from __future__ import annotations

from headway.access import accounts as values
from headway.access.identity import Identity
from headway.access.roles import Role
from headway.client.account_models import (
    AuditLine,
    Me,
    Member,
    MemberRole,
    Membership,
    Token,
    User,
    Workspace,
)

_SHOWN: dict[Role, MemberRole] = {
    Role.VIEWER: "viewer",
    Role.USER: "user",
    Role.ADMIN: "admin",
}


def me_view(caller: Identity, grant: values.Grant | None) -> Me:
    """The caller.

    Args:
        caller: Who it is.
        grant: What its token is good for; None on a server without accounts.
    """
    roles = {caller.workspace: caller.role} if grant is None else grant.workspaces
    return Me(
        user=caller.user,
        workspace=caller.workspace or None,
        role=_SHOWN.get(caller.role),
        administrator=caller.administrator,
        via=caller.via,
        token_id=caller.token_id,
        expires_at=None if grant is None else grant.token.expires_at,
        workspaces=[
            Membership(workspace=name, role=_SHOWN[role]) for name, role in sorted(roles.items())
        ],
    )


def user_view(user: values.User) -> User:
    return User(
        name=user.name,
        administrator=user.administrator,
        created_at=user.created_at,
        created_by=user.created_by,
    )


def workspace_view(workspace: values.Workspace) -> Workspace:
    return Workspace(
        name=workspace.name, created_at=workspace.created_at, created_by=workspace.created_by
    )


def member_view(member: values.Member) -> Member:
    return Member(workspace=member.workspace, user=member.user, role=_SHOWN[member.role])


def token_view(token: values.Token) -> Token:
    return Token(
        id=token.id,
        kind=token.kind.value,
        label=token.label,
        user=token.user,
        workspace=token.workspace,
        role=None if token.role is None else _SHOWN[token.role],
        created_at=token.created_at,
        created_by=token.created_by,
        expires_at=token.expires_at,
        last_used_at=token.last_used_at,
        revoked_at=token.revoked_at,
        revoked_by=token.revoked_by,
    )


def audit_view(row: values.AuditRow) -> AuditLine:
    event, act = row.event, row.event.act
    return AuditLine(
        number=row.number,
        at=row.at,
        user=act.user,
        via=act.via,
        token_id=act.token_id,
        address=act.address,
        workspace=event.workspace,
        action=event.action,
        subject=event.subject,
        detail=dict(event.detail),
        count=event.count,
    )

"""Between the rows of SQLite and the values of accounts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from headway.access.accounts import (
    Act,
    AuditEvent,
    AuditRow,
    Member,
    NewToken,
    Token,
    TokenKind,
    User,
    Workspace,
)
from headway.access.roles import Role
from headway.store.sqlite.rows import Row, time_from_us, to_json, us_from_time

COLUMNS_OF_ACCESS = (
    "id, kind, label, user, workspace, role, parent, created_at_us, created_by, expires_at_us,"
    " last_used_at_us, revoked_at_us, revoked_by"
)
WIDTH_OF_ACCESS = COLUMNS_OF_ACCESS.count(",") + 1
COLUMNS_OF_AUDIT = (
    "number, at_us, user, via, token_id, address, workspace, action, subject, detail_json, count"
)

_detail = msgspec.json.Decoder(dict[str, str])


def user_from(row: Row) -> User:
    name, administrator, created_at_us, created_by = row
    created_at = time_from_us(created_at_us)
    return User(
        name=name, administrator=bool(administrator), created_at=created_at, created_by=created_by
    )


def workspace_from(row: Row) -> Workspace:
    name, created_at_us, created_by = row
    return Workspace(name=name, created_at=time_from_us(created_at_us), created_by=created_by)


def member_from(row: Row) -> Member:
    workspace, user, role = row
    return Member(workspace=workspace, user=user, role=Role(role))


def token_from(row: Row) -> Token:
    """A token from the columns of `COLUMNS_OF_ACCESS`; further columns are left alone."""
    return Token(
        id=row[0],
        kind=TokenKind(row[1]),
        label=row[2],
        user=row[3],
        workspace=row[4],
        role=None if row[5] is None else Role(row[5]),
        parent=row[6],
        created_at=time_from_us(row[7]),
        created_by=row[8],
        expires_at=_time(row[9]),
        last_used_at=_time(row[10]),
        revoked_at=_time(row[11]),
        revoked_by=row[12],
    )


def token_columns(token: NewToken) -> dict[str, Any]:
    """A new token as the parameters of its insertion."""
    expires = token.expires_at
    return {
        "id": token.id,
        "secret_hash": token.secret_hash,
        "kind": token.kind.value,
        "label": token.label,
        "user": token.user,
        "workspace": token.workspace,
        "role": None if token.role is None else token.role.value,
        "parent": token.parent,
        "expires_at_us": None if expires is None else us_from_time(expires),
    }


def audit_columns(event: AuditEvent) -> dict[str, Any]:
    """An event as the parameters of its insertion, its time apart."""
    act = event.act
    return {
        "user": act.user,
        "via": act.via,
        "token_id": act.token_id,
        "address": act.address,
        "workspace": event.workspace,
        "action": event.action,
        "subject": event.subject,
        "detail_json": to_json(event.detail),
        "count": event.count,
    }


def audit_from(row: Row) -> AuditRow:
    number, at_us, user, via, token_id, address, workspace, action, subject, detail, count = row
    event = AuditEvent(
        act=Act(user=user, via=via, token_id=token_id, address=address),
        action=action,
        subject=subject,
        workspace=workspace,
        detail=_detail.decode(detail),
        count=count,
    )
    return AuditRow(number=number, at=time_from_us(at_us), event=event)


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else time_from_us(microseconds)

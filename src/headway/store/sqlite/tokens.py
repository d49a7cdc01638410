"""Tokens: stored as hashes, revoked with what began with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from headway.access.accounts import Act, Grant, NewToken, Token, TokenKind, Unknown
from headway.access.roles import Role
from headway.store.sqlite import audit, people
from headway.store.sqlite.account_rows import WIDTH_OF_ACCESS, token_columns, token_from
from headway.store.sqlite.rows import us_from_time
from headway.store.sqlite.transaction import Transaction


def add(transaction: Transaction, token: NewToken, act: Act) -> Token:
    """Store a token; it is revoked at once when what it stands on has just gone.

    Whoever adds it has looked before, but in another transaction.
    """
    transaction.change(
        "insert_token", now_us=transaction.now_us, by=act.user, **token_columns(token)
    )
    audit.note(
        transaction, act, "token.add", token.id, token.workspace,
        kind=token.kind.value, label=token.label, user=token.user or "",
    )  # fmt: skip
    if not _has_ground(transaction, token):
        _revoke(transaction, token.id, act)
    stored = find(transaction, token.id)
    assert stored is not None
    return stored


def find(transaction: Transaction, token_id: str) -> Token | None:
    row = transaction.one("token", id=token_id)
    return None if row is None else token_from(row)


def find_all(
    transaction: Transaction, kinds: Sequence[TokenKind], user: str | None, workspace: str | None
) -> list[Token]:
    if user is not None:
        rows = transaction.all("tokens_of_user", user=user)
    elif workspace is not None:
        rows = transaction.all("tokens_of_workspace", workspace=workspace)
    else:
        rows = transaction.all("tokens")
    return [token for token in map(token_from, rows) if token.kind in kinds]


def grant(transaction: Transaction, token_id: str) -> Grant | None:
    row = transaction.one("token", id=token_id)
    if row is None:
        return None
    token = token_from(row)
    administrator = False
    roles: dict[str, Role] = {}
    if token.user is not None:
        owner = people.user(transaction, token.user)
        administrator = owner is not None and owner.administrator
        roles = _roles(transaction, token.user, administrator)
    return Grant(
        token=token, secret_hash=row[WIDTH_OF_ACCESS], administrator=administrator, roles=roles
    )


def revoke(transaction: Transaction, token_id: str, act: Act) -> Token | Unknown:
    if find(transaction, token_id) is None:
        return Unknown(what="token", name=token_id)
    _revoke(transaction, token_id, act)
    token = find(transaction, token_id)
    assert token is not None
    return token


def spend(transaction: Transaction, token_id: str, act: Act) -> Token | None:
    """Revoke a live token; None when it was not live."""
    token = find(transaction, token_id)
    if token is None or not token.is_live(transaction.now):
        return None
    _revoke(transaction, token_id, act)
    return token


def note_use(transaction: Transaction, used: Mapping[str, datetime]) -> None:
    for token_id, at in used.items():
        transaction.change("note_use", id=token_id, at_us=us_from_time(at))


def remove_dead(transaction: Transaction, before: datetime, limit: int) -> int:
    return transaction.change("remove_dead_tokens", before_us=us_from_time(before), limit=limit)


def _has_ground(transaction: Transaction, token: NewToken) -> bool:
    """Whether its user, its workspace and the token that it began with are there."""
    if token.user is not None and people.user(transaction, token.user) is None:
        return False
    if token.kind is TokenKind.SERVICE and token.workspace is not None:
        return people.workspace(transaction, token.workspace) is not None
    parent = None if token.parent is None else find(transaction, token.parent)
    return token.parent is None or (parent is not None and parent.is_live(transaction.now))


def _roles(transaction: Transaction, user: str, administrator: bool) -> dict[str, Role]:
    if administrator:
        return {each.name: Role.ADMIN for each in people.workspaces(transaction)}
    rows = transaction.all("roles_of_user", user=user)
    return {workspace: Role(role) for workspace, role in rows}


def _revoke(transaction: Transaction, token_id: str, act: Act) -> None:
    now_us = transaction.now_us
    if transaction.change("revoke_token", id=token_id, now_us=now_us, by=act.user):
        transaction.change("revoke_children", id=token_id, now_us=now_us, by=act.user)
        token = find(transaction, token_id)
        workspace = None if token is None else token.workspace
        audit.note(transaction, act, "token.revoke", token_id, workspace)

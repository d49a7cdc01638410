"""Accounts for tests: users, workspaces and tokens, made in the store."""

from __future__ import annotations

from datetime import datetime

from headway.access.accounts import Act, NewToken, TokenKind, User, Workspace
from headway.access.roles import Role
from headway.access.tokens import mint
from headway.store.accounts import AccountStore

ACT = Act(user="test", via="token")


async def add_user(accounts: AccountStore, name: str, *, administrator: bool = False) -> None:
    assert isinstance(await accounts.add_user(name, administrator, ACT), User)


async def add_workspace(accounts: AccountStore, name: str) -> None:
    assert isinstance(await accounts.add_workspace(name, ACT), Workspace)


async def add_token(
    accounts: AccountStore,
    user: str | None = None,
    *,
    kind: TokenKind = TokenKind.PERSONAL,
    label: str = "test",
    workspace: str | None = None,
    role: Role | None = None,
    expires_at: datetime | None = None,
    parent: str | None = None,
) -> str:
    """A token in the store; its text."""
    minted = mint()
    new = NewToken(
        id=minted.id, secret_hash=minted.secret_hash, kind=kind, label=label, user=user,
        workspace=workspace, role=role, expires_at=expires_at, parent=parent,
    )  # fmt: skip
    await accounts.add_token(new, ACT)
    return minted.text


async def add_member(accounts: AccountStore, workspace: str, user: str, role: Role) -> str:
    """A user in a workspace, with a token; its text."""
    if await accounts.user(user) is None:
        await add_user(accounts, user)
    await accounts.set_member(workspace, user, role, ACT)
    return await add_token(accounts, user)


def id_of(token: str) -> str:
    """The public part of a token."""
    return token.split("_")[1]


def bearer_of(token: str, workspace: str | None = None) -> dict[str, str]:
    """The headers that show a token."""
    headers = {"authorization": f"Bearer {token}"}
    return headers if workspace is None else {**headers, "headway-workspace": workspace}

"""Accounts written straight into a state directory, for tests that begin with some."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

from headway.access.accounts import Act, NewToken, TokenKind
from headway.access.roles import Role
from headway.access.tokens import mint
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.store.sqlite.store import SqliteStore

ACT = Act(user="root", via="local")


def people(
    directory: Path,
    members: dict[str, dict[str, Role]],
    *,
    administrators: tuple[str, ...] = ("root",),
    lives_s: float | None = None,
) -> dict[str, str]:
    """Make users with their roles by workspace; a token of each, by name."""
    return asyncio.run(_people(directory, members, administrators, lives_s))


def revoke(directory: Path, token: str) -> None:
    """Revoke a token, as another process would."""

    async def change(store: SqliteStore) -> None:
        await store.accounts.revoke_token(token.split("_")[1], ACT)

    asyncio.run(_with_store(directory, change))


async def _with_store(directory: Path, work: Callable[[SqliteStore], Awaitable[None]]) -> None:
    store = SqliteStore(StateDir(directory), SystemClock(), random.Random(1))
    await store.open()
    try:
        await work(store)
    finally:
        await store.close()


async def _people(
    directory: Path,
    members: dict[str, dict[str, Role]],
    administrators: tuple[str, ...],
    lives_s: float | None,
) -> dict[str, str]:
    state_dir, clock = StateDir(directory), SystemClock()
    state_dir.create()
    store = SqliteStore(state_dir, clock, random.Random(1))
    await store.open()
    try:
        accounts, tokens = store.accounts, {}
        names = {workspace for roles in members.values() for workspace in roles}
        known = {each.name for each in await accounts.workspaces()}
        for workspace in sorted(names - known):
            await accounts.add_workspace(workspace, ACT)
        for name in (*administrators, *members):
            await accounts.add_user(name, name in administrators, ACT)
            minted = mint()
            expires = None if lives_s is None else clock.now() + timedelta(seconds=lives_s)
            await accounts.add_token(
                NewToken(
                    id=minted.id, secret_hash=minted.secret_hash, kind=TokenKind.PERSONAL,
                    label="test", user=name, expires_at=expires,
                ),
                ACT,
            )  # fmt: skip
            tokens[name] = minted.text
        for name, roles in members.items():
            for workspace, role in roles.items():
                await accounts.set_member(workspace, name, role, ACT)
        return tokens
    finally:
        await store.close()

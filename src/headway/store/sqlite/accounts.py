"""Accounts in SQLite: implements `headway.store.accounts.AccountStore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from headway.access.accounts import (
    Act,
    AuditEvent,
    AuditRow,
    Grant,
    LastAdministrator,
    Member,
    NewToken,
    Taken,
    Token,
    TokenKind,
    Unknown,
    User,
    WasRemoved,
    Workspace,
)
from headway.access.roles import Role
from headway.store.sqlite import audit, people, tokens
from headway.store.sqlite.running import Run


class SqliteAccounts:
    """The accounts of one database.

    Args:
        write: Runs what changes something.
        read: Runs quick reads.
        scan: Runs reads that may take longer.
    """

    def __init__(self, write: Run, read: Run, scan: Run) -> None:
        self._write = write
        self._read = read
        self._scan = scan

    async def exist(self) -> bool:
        return await self._read(people.exist)

    async def add_user(
        self, name: str, administrator: bool, act: Act, *, returning: bool = False
    ) -> User | Taken | WasRemoved:
        return await self._write(people.add_user, name, administrator, act, returning)

    async def user(self, name: str) -> User | None:
        return await self._read(people.user, name)

    async def users(self) -> list[User]:
        return await self._read(people.users)

    async def set_administrator(
        self, name: str, administrator: bool, act: Act
    ) -> User | Unknown | LastAdministrator:
        return await self._write(people.set_administrator, name, administrator, act)

    async def remove_user(self, name: str, act: Act) -> User | Unknown | LastAdministrator:
        return await self._write(people.remove_user, name, act)

    async def add_workspace(self, name: str, act: Act) -> Workspace | Taken:
        return await self._write(people.add_workspace, name, act)

    async def workspaces(self) -> list[Workspace]:
        return await self._read(people.workspaces)

    async def remove_workspace(self, name: str, act: Act) -> Workspace | Unknown:
        return await self._write(people.remove_workspace, name, act)

    async def members(self, workspace: str) -> list[Member]:
        return await self._read(people.members, workspace)

    async def set_member(self, workspace: str, user: str, role: Role, act: Act) -> Member | Unknown:
        return await self._write(people.set_member, workspace, user, role, act)

    async def remove_member(self, workspace: str, user: str, act: Act) -> Member | Unknown:
        return await self._write(people.remove_member, workspace, user, act)

    async def add_token(self, token: NewToken, act: Act) -> Token:
        return await self._write(tokens.add, token, act)

    async def token(self, token_id: str) -> Token | None:
        return await self._read(tokens.find, token_id)

    async def tokens(
        self, kinds: Sequence[TokenKind], *, user: str | None = None, workspace: str | None = None
    ) -> list[Token]:
        run = self._scan if user is None and workspace is None else self._read
        return await run(tokens.find_all, kinds, user, workspace)

    async def grant(self, token_id: str) -> Grant | None:
        return await self._read(tokens.grant, token_id)

    async def revoke_token(self, token_id: str, act: Act) -> Token | Unknown:
        return await self._write(tokens.revoke, token_id, act)

    async def spend_token(self, token_id: str, act: Act) -> Token | None:
        return await self._write(tokens.spend, token_id, act)

    async def note_use(self, used: Mapping[str, datetime]) -> None:
        await self._write(tokens.note_use, used)

    async def remove_dead_tokens(self, before: datetime, limit: int) -> int:
        return await self._write(tokens.remove_dead, before, limit)

    async def audit(self, events: Sequence[AuditEvent]) -> None:
        await self._write(audit.note_all, events)

    async def audit_log(
        self,
        before: int | None = None,
        limit: int = 100,
        *,
        workspace: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        return await self._scan(audit.log, before, limit, workspace, action)

    async def trim_audit(self, before: datetime, max_denied: int, limit: int) -> int:
        return await self._write(audit.trim, before, max_denied, limit)

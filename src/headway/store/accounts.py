"""The interface to stored accounts: users, workspaces, members, tokens, audit log.

Every change is noted in the audit log by the transaction that makes it; `act` says who does it.
Expected outcomes are values. `tests/conformance/test_accounts.py` is what it must do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

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


class AccountStore(Protocol):
    """Durable accounts. All methods may raise `StoreUnavailable`."""

    async def exist(self) -> bool:
        """Whether there ever was a user: from then on nobody is let in without a token."""
        ...

    # --- users ---

    async def add_user(
        self, name: str, administrator: bool, act: Act, *, returning: bool = False
    ) -> User | Taken | WasRemoved:
        """Make an account.

        With `returning` the name may be that of a removed user, who comes back: jobs and the audit
        log take the two for one.
        """
        ...

    async def user(self, name: str) -> User | None: ...

    async def users(self) -> list[User]:
        """By name."""
        ...

    async def set_administrator(
        self, name: str, administrator: bool, act: Act
    ) -> User | Unknown | LastAdministrator: ...

    async def remove_user(self, name: str, act: Act) -> User | Unknown | LastAdministrator:
        """Remove the account and its memberships, and revoke its tokens."""
        ...

    # --- workspaces ---

    async def add_workspace(self, name: str, act: Act) -> Workspace | Taken: ...

    async def workspaces(self) -> list[Workspace]:
        """By name, without deleted ones."""
        ...

    async def remove_workspace(self, name: str, act: Act) -> Workspace | Unknown:
        """Delete it with its memberships, and revoke the tokens that are good only there.

        Its jobs stay until retention takes them, but nobody sees them; those that wait fail when
        they are claimed.
        """
        ...

    # --- members ---

    async def members(self, workspace: str) -> list[Member]:
        """By name."""
        ...

    async def set_member(
        self, workspace: str, user: str, role: Role, act: Act
    ) -> Member | Unknown: ...

    async def remove_member(self, workspace: str, user: str, act: Act) -> Member | Unknown: ...

    # --- tokens ---

    async def add_token(self, token: NewToken, act: Act) -> Token: ...

    async def token(self, token_id: str) -> Token | None: ...

    async def tokens(
        self, kinds: Sequence[TokenKind], *, user: str | None = None, workspace: str | None = None
    ) -> list[Token]:
        """Those of a user, of a workspace, or all; oldest first, revoked ones included."""
        ...

    async def grant(self, token_id: str) -> Grant | None:
        """What authentication needs to know of a token, live or not."""
        ...

    async def revoke_token(self, token_id: str, act: Act) -> Token | Unknown:
        """Revoke it and those that it is the parent of. Revoking twice changes nothing."""
        ...

    async def spend_token(self, token_id: str, act: Act) -> Token | None:
        """Revoke a live token and get it, for one use: only one caller ever does."""
        ...

    async def note_use(self, used: Mapping[str, datetime]) -> None:
        """Note when tokens were last used."""
        ...

    async def remove_dead_tokens(self, before: datetime, limit: int) -> int:
        """Forget tokens that were revoked or had expired before; how many."""
        ...

    # --- audit log ---

    async def audit(self, events: Sequence[AuditEvent]) -> None:
        """Note events that no method of this interface makes."""
        ...

    async def audit_log(
        self,
        before: int | None = None,
        limit: int = 100,
        *,
        workspace: str | None = None,
        action: str | None = None,
    ) -> list[AuditRow]:
        """Newest first, before a number."""
        ...

    async def trim_audit(self, before: datetime, max_denied: int, limit: int) -> int:
        """Remove what is older, and denials beyond the newest `max_denied`; how many."""
        ...

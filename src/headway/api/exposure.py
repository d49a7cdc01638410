"""Whether a server may listen where it is told to: beyond loopback only for people with tokens."""

from __future__ import annotations

import random

from headway.access.accounts import TokenKind
from headway.api.listening import address_of_host
from headway.core.clock import Clock
from headway.core.errors import ConfigError
from headway.core.statedir import StateDir
from headway.store.accounts import AccountStore
from headway.store.sqlite.store import SqliteStore


async def check_exposure(host: str, state_dir: StateDir, clock: Clock) -> None:
    """Let a server listen on `host`; called before it does.

    Raises:
        ConfigError: others could reach it, and no administrator has a token yet. Without tokens
            everybody who can connect may run code.
    """
    if address_of_host(host).is_loopback:
        return
    store = SqliteStore(state_dir, clock, random.Random())
    try:
        await store.open()
        if await _has_administrator(store.accounts, clock):
            return
    finally:
        await store.close()
    raise ConfigError(
        f"will not listen on {host}: without access tokens anybody who reaches it could run jobs;"
        f" run `headway admin bootstrap --state-dir {state_dir.root}` first, which prints a token"
        " for an administrator, or use --host 127.0.0.1 and forward the port, for example with"
        " ssh -L"
    )


async def _has_administrator(accounts: AccountStore, clock: Clock) -> bool:
    administrators = {user.name for user in await accounts.users() if user.administrator}
    tokens = await accounts.tokens([TokenKind.PERSONAL])
    now = clock.now()
    return any(token.user in administrators and token.is_live(now) for token in tokens)

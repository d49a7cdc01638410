"""J11: nobody hides what it was denied behind the noise of others, and memory stays bounded."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headway.access.identity import Identity
from headway.access.roles import Role
from headway.api.audit_trail import MAX_ROWS, AuditTrail
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.store.accounts import AccountStore
from headway.store.sqlite.store import SqliteStore

MAL = Identity("mal", "red", Role.USER, token_id="a")
EVE = Identity("eve", "red", Role.ADMIN, token_id="b")
REST = "others, not told apart"


@pytest.fixture
async def accounts(tmp_path: Path) -> AsyncIterator[AccountStore]:
    store = SqliteStore(StateDir(tmp_path / "state"), SystemClock(), random.Random(1))
    await store.open()
    yield store.accounts
    await store.close()


async def noted(accounts: AccountStore) -> dict[tuple[str, str], int]:
    events = [row.event for row in await accounts.audit_log(limit=1000)]
    return {(event.act.user, event.subject): event.count for event in events}


async def test_noise_without_a_token_hides_nothing_of_who_has_one(accounts: AccountStore) -> None:
    trail = AuditTrail(accounts)
    for number in range(MAX_ROWS + 20):
        trail.denied(None, "10.0.0.1", f"GET /{number}", 401, None)
    trail.denied(MAL, "10.0.0.1", "GET /secret", 403, "red")
    trail.denied(MAL, "10.0.0.1", "GET /secret", 403, "red")
    await trail.write()
    lines = await noted(accounts)
    assert lines["mal", "GET /secret"] == 2
    assert lines["-", REST] == 20


async def test_one_user_s_noise_hides_nothing_of_another_s(accounts: AccountStore) -> None:
    trail = AuditTrail(accounts)
    for number in range(MAX_ROWS + 5):
        trail.denied(EVE, "10.0.0.1", f"GET /{number}", 403, "red")
    trail.denied(MAL, "10.0.0.1", "GET /secret", 403, "red")
    await trail.write()
    lines = await noted(accounts)
    assert lines["mal", "GET /secret"] == 1
    assert lines["eve", REST] == 5
    assert len(lines) == MAX_ROWS + 2


async def test_what_was_written_is_not_written_again(accounts: AccountStore) -> None:
    trail = AuditTrail(accounts)
    for _ in range(2):
        for number in range(MAX_ROWS + 1):
            trail.denied(MAL, "10.0.0.1", f"GET /{number}", 403, "red")
        await trail.write()
    await trail.write()
    assert len(await accounts.audit_log(limit=1000)) == 2 * (MAX_ROWS + 1)

"""A token that is made while what it stands on goes away is dead from the start (N5)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headway.access.accounts import Act, NewToken, Token, TokenKind
from headway.access.roles import Role
from headway.access.tokens import mint
from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.core.states import JobState
from headway.store.jobs import JobRow
from headway.store.sqlite.store import SqliteStore
from headway.store.store import Store
from headway.store.submissions import NewJob

ACT = Act(user="root", via="token")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime(2026, 12, 1, 12, 0, tzinfo=UTC), monotonic_ns=10**12)


@pytest.fixture(params=["sqlite"])
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    state_dir = StateDir(tmp_path / "state")
    state_dir.create()
    store = SqliteStore(state_dir, clock, random.Random(1))
    await store.open()
    await store.accounts.add_user("root", True, ACT)
    await store.accounts.add_user("ann", False, ACT)
    await store.accounts.add_workspace("lab", ACT)
    yield store
    await store.close()


async def add(store: Store, kind: TokenKind = TokenKind.PERSONAL, **more: object) -> Token:
    minted = mint()
    token = NewToken(
        id=minted.id, secret_hash=minted.secret_hash, kind=kind, label="test",
        **more,  # type: ignore[arg-type]
    )  # fmt: skip
    return await store.accounts.add_token(token, ACT)


async def test_a_session_of_a_token_that_was_just_revoked(store: Store, clock: ManualClock) -> None:
    """Somebody signs in with a stolen token in the moment in which it is revoked."""
    token = await add(store, user="ann")
    await store.accounts.revoke_token(token.id, ACT)
    session = await add(store, TokenKind.SESSION, user="ann", parent=token.id)
    assert not session.is_live(clock.now())


async def test_a_session_of_a_token_that_has_just_expired(store: Store, clock: ManualClock) -> None:
    soon = clock.now() + timedelta(seconds=5)
    token = await add(store, user="ann", expires_at=soon)
    clock.advance(10.0)
    session = await add(store, TokenKind.SESSION, user="ann", parent=token.id)
    assert not session.is_live(clock.now())


async def test_a_token_of_a_user_who_was_just_removed(store: Store, clock: ManualClock) -> None:
    """Else it would speak for whoever gets the name next."""
    await store.accounts.remove_user("ann", ACT)
    token = await add(store, user="ann")
    assert not token.is_live(clock.now())
    await store.accounts.add_user("ann", False, ACT)
    found = await store.accounts.token(token.id)
    assert found is not None
    assert not found.is_live(clock.now())


async def test_a_service_token_of_a_workspace_that_was_just_deleted(
    store: Store, clock: ManualClock
) -> None:
    await store.accounts.remove_workspace("lab", ACT)
    token = await add(store, TokenKind.SERVICE, workspace="lab", role=Role.USER)
    assert not token.is_live(clock.now())


async def test_what_stands_on_something_lives(store: Store, clock: ManualClock) -> None:
    token = await add(store, user="ann")
    session = await add(store, TokenKind.SESSION, user="ann", parent=token.id)
    service = await add(store, TokenKind.SERVICE, workspace="lab", role=Role.USER)
    metrics = await add(store, TokenKind.METRICS)
    assert all(each.is_live(clock.now()) for each in (token, session, service, metrics))


async def claimed_or_failed(store: Store, row: JobRow) -> JobState:
    await store.claim("w", {"long": 1}, 30.0)
    found = await store.find(row.id)
    assert isinstance(found, JobRow)
    return found.state


async def test_jobs_of_an_expired_service_token_are_not_run(
    store: Store, clock: ManualClock
) -> None:
    """It could else leave jobs behind that begin long after it was to be good."""
    soon = clock.now() + timedelta(seconds=5)
    await add(store, TokenKind.SERVICE, workspace="lab", role=Role.USER, expires_at=soon)
    job = NewJob(
        operation="x", lane="long", input_json="{}", workspace="lab", created_by="service:test"
    )
    (first,) = await submitted(store, job)
    assert await claimed_or_failed(store, first) is JobState.RUNNING
    (second,) = await submitted(store, job)
    clock.advance(10.0)
    assert await claimed_or_failed(store, second) is JobState.FAILED


async def submitted(store: Store, job: NewJob) -> list[JobRow]:
    answer = await store.submit([job])
    assert isinstance(answer, list)
    return [each.job for each in answer]

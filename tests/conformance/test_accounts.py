"""What a store of accounts must do, and what becomes of the jobs of who lost their access (J11)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from accounts import ACT, add_member, add_token, add_user, add_workspace, id_of

from headway.access.accounts import (
    DENIED,
    Act,
    AuditEvent,
    LastAdministrator,
    Member,
    Taken,
    TokenKind,
    Unknown,
    User,
    WasRemoved,
    Workspace,
)
from headway.access.roles import Role
from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.core.states import JobState, Outcome, WaitReason
from headway.store.accounts import AccountStore
from headway.store.attempts import ClaimedJob, Finish
from headway.store.jobs import JobRow
from headway.store.sqlite.store import SqliteStore
from headway.store.store import Store
from headway.store.submissions import NewJob

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
PERSONAL = [TokenKind.PERSONAL]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW, monotonic_ns=10**12)


@pytest.fixture(params=["sqlite"])
async def store(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    store = SqliteStore(StateDir(tmp_path / "state"), clock, random.Random(1))
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def accounts(store: Store) -> AccountStore:
    return store.accounts


async def actions(accounts: AccountStore) -> list[str]:
    rows = reversed(await accounts.audit_log())
    return [f"{row.event.action} {row.event.subject}" for row in rows]


class TestUsers:
    async def test_the_first_user_is_remembered_for_ever(self, accounts: AccountStore) -> None:
        assert not await accounts.exist()
        added = await accounts.add_user("ann", False, ACT)
        assert added == User(name="ann", administrator=False, created_at=NOW, created_by="test")
        assert await accounts.user("ann") == added
        assert await accounts.exist()
        await accounts.remove_user("ann", ACT)
        assert await accounts.users() == []
        assert await accounts.exist()

    async def test_a_name_is_given_once(self, accounts: AccountStore) -> None:
        await add_user(accounts, "ann")
        assert await accounts.add_user("ann", True, ACT) == Taken(what="user", name="ann")
        [ann] = await accounts.users()
        assert not ann.administrator

    async def test_the_name_of_a_removed_user_is_given_to_nobody_else(
        self, accounts: AccountStore, clock: ManualClock
    ) -> None:
        """Jobs, shares and the audit log bear it: two people would be taken for one."""
        await add_user(accounts, "ann")
        await accounts.remove_user("ann", ACT)
        clock.advance(60)
        assert await accounts.add_user("ann", True, ACT) == WasRemoved(name="ann", removed_at=NOW)
        assert await accounts.user("ann") is None
        assert await accounts.users() == []
        assert await actions(accounts) == ["user.add ann", "user.remove ann"]

    async def test_a_removed_user_comes_back_as_nobody_s_member(
        self, accounts: AccountStore, clock: ManualClock
    ) -> None:
        token = await add_member(accounts, "default", "ann", Role.ADMIN)
        before = await accounts.user("ann")
        await accounts.set_administrator("ann", True, ACT)
        await add_user(accounts, "root", administrator=True)
        await accounts.remove_user("ann", ACT)
        clock.advance(60)
        other = Act(user="root", via="token")
        assert await accounts.add_user("ann", False, other, returning=True) == before
        assert await accounts.user("ann") == before
        assert await accounts.members("default") == []
        stored = await accounts.token(id_of(token))
        assert stored is not None
        assert stored.revoked_at is not None
        [newest] = await accounts.audit_log(limit=1)
        assert newest.event.detail == {"administrator": "no", "returning": "yes"}
        taken = Taken(what="user", name="ann")
        assert await accounts.add_user("ann", True, ACT, returning=True) == taken

    async def test_a_removed_administrator_counts_as_none(self, accounts: AccountStore) -> None:
        await add_user(accounts, "root", administrator=True)
        await add_user(accounts, "ann", administrator=True)
        await accounts.remove_user("ann", ACT)
        assert await accounts.remove_user("root", ACT) == LastAdministrator(name="root")

    async def test_the_last_administrator_stays(self, accounts: AccountStore) -> None:
        await add_user(accounts, "root", administrator=True)
        last = LastAdministrator(name="root")
        assert await accounts.remove_user("root", ACT) == last
        assert await accounts.set_administrator("root", False, ACT) == last
        await add_user(accounts, "ann", administrator=True)
        assert isinstance(await accounts.set_administrator("root", False, ACT), User)
        assert isinstance(await accounts.remove_user("root", ACT), User)
        unknown = Unknown(what="user", name="root")
        assert await accounts.remove_user("root", ACT) == unknown
        assert await accounts.set_administrator("root", True, ACT) == unknown

    async def test_who_is_removed_loses_memberships_and_tokens(
        self, accounts: AccountStore
    ) -> None:
        token = await add_member(accounts, "default", "ann", Role.USER)
        session = await add_token(accounts, "ann", kind=TokenKind.SESSION)
        service = await add_token(
            accounts, kind=TokenKind.SERVICE, label="ci", workspace="default", role=Role.USER
        )
        await accounts.remove_user("ann", ACT)
        assert await accounts.members("default") == []
        for text, revoked in ((token, True), (session, True), (service, False)):
            stored = await accounts.token(id_of(text))
            assert stored is not None
            assert (stored.revoked_at is not None) == revoked


class TestWorkspaces:
    async def test_there_is_one_from_the_start(self, accounts: AccountStore) -> None:
        assert [each.name for each in await accounts.workspaces()] == ["default"]

    async def test_the_name_of_a_deleted_one_is_not_given_out_again(
        self, accounts: AccountStore
    ) -> None:
        """Its jobs are still kept under it: whoever got the name would see them."""
        await add_workspace(accounts, "lab")
        await add_member(accounts, "lab", "ann", Role.USER)
        only_there = await add_token(accounts, "ann", workspace="lab")
        assert isinstance(await accounts.remove_workspace("lab", ACT), Workspace)
        assert [each.name for each in await accounts.workspaces()] == ["default"]
        assert await accounts.members("lab") == []
        stored = await accounts.token(id_of(only_there))
        assert stored is not None
        assert stored.revoked_by == "test"
        assert await accounts.add_workspace("lab", ACT) == Taken(what="workspace", name="lab")
        unknown = Unknown(what="workspace", name="lab")
        assert await accounts.remove_workspace("lab", ACT) == unknown
        assert await accounts.set_member("lab", "ann", Role.USER, ACT) == unknown

    async def test_members_have_one_role_each(self, accounts: AccountStore) -> None:
        await add_user(accounts, "ann")
        for role in (Role.VIEWER, Role.ADMIN):
            member = Member(workspace="default", user="ann", role=role)
            assert await accounts.set_member("default", "ann", role, ACT) == member
            assert await accounts.members("default") == [member]
        nobody = Unknown(what="user", name="bob")
        assert await accounts.set_member("default", "bob", Role.USER, ACT) == nobody
        assert isinstance(await accounts.remove_member("default", "ann", ACT), Member)
        gone = Unknown(what="member", name="ann")
        assert await accounts.remove_member("default", "ann", ACT) == gone


class TestTokens:
    async def test_a_grant_says_all_that_authentication_needs(self, accounts: AccountStore) -> None:
        await add_workspace(accounts, "lab")
        token = await add_member(accounts, "lab", "ann", Role.USER)
        grant = await accounts.grant(id_of(token))
        assert grant is not None
        assert (grant.administrator, grant.roles) == (False, {"lab": Role.USER})
        await accounts.set_administrator("ann", True, ACT)
        grant = await accounts.grant(id_of(token))
        assert grant is not None
        assert grant.administrator
        assert grant.roles == {"default": Role.ADMIN, "lab": Role.ADMIN}
        assert await accounts.grant("0" * 12) is None

    async def test_the_token_itself_is_nowhere_in_the_files(
        self, accounts: AccountStore, store: SqliteStore, tmp_path: Path
    ) -> None:
        await add_user(accounts, "ann")
        secret = (await add_token(accounts, "ann")).split("_")[2].encode()
        await store.close()
        files = [path for path in tmp_path.rglob("*") if path.is_file()]  # noqa: ASYNC240
        assert files
        assert not any(secret in path.read_bytes() for path in files)

    async def test_revoking_takes_along_what_began_with_it(self, accounts: AccountStore) -> None:
        await add_user(accounts, "ann")
        parent = await add_token(accounts, "ann")
        child = await add_token(accounts, "ann", kind=TokenKind.SESSION, parent=id_of(parent))
        other = await add_token(accounts, "ann")
        await accounts.revoke_token(id_of(parent), ACT)
        live = {each.id for each in await accounts.tokens(list(TokenKind)) if each.is_live(NOW)}
        assert live == {id_of(other)}
        assert id_of(child) not in live
        before = await accounts.audit_log()
        await accounts.revoke_token(id_of(parent), ACT)
        assert await accounts.audit_log() == before  # twice is once
        unknown = Unknown(what="token", name="none")
        assert await accounts.revoke_token("none", ACT) == unknown

    async def test_a_token_for_one_use_is_spent_by_one_only(
        self, accounts: AccountStore, clock: ManualClock
    ) -> None:
        await add_user(accounts, "ann")
        link = await add_token(accounts, "ann", kind=TokenKind.LINK)
        spent = await asyncio.gather(*(accounts.spend_token(id_of(link), ACT) for _ in range(20)))
        assert sum(each is not None for each in spent) == 1
        late = await add_token(accounts, "ann", expires_at=NOW + timedelta(seconds=5))
        clock.advance(5.0)
        assert await accounts.spend_token(id_of(late), ACT) is None

    async def test_use_is_noted_and_dead_tokens_are_forgotten(self, accounts: AccountStore) -> None:
        await add_user(accounts, "ann")
        token, other = await add_token(accounts, "ann"), await add_token(accounts, "ann")
        await accounts.note_use({id_of(token): NOW, "unknown": NOW})
        await accounts.note_use({id_of(token): NOW - timedelta(days=1)})  # told late
        stored = await accounts.token(id_of(token))
        assert stored is not None
        assert stored.last_used_at == NOW
        await accounts.revoke_token(id_of(token), ACT)
        assert await accounts.remove_dead_tokens(NOW, 10) == 0
        assert await accounts.remove_dead_tokens(NOW + timedelta(days=1), 10) == 1
        assert [each.id for each in await accounts.tokens(PERSONAL)] == [id_of(other)]

    async def test_lists_are_by_user_by_workspace_or_all(self, accounts: AccountStore) -> None:
        await add_user(accounts, "ann")
        own = await add_token(accounts, "ann")
        service = await add_token(
            accounts, kind=TokenKind.SERVICE, label="ci", workspace="default", role=Role.USER
        )
        every = list(TokenKind)
        assert [each.id for each in await accounts.tokens(every, user="ann")] == [id_of(own)]
        found = await accounts.tokens(every, workspace="default")
        assert [each.id for each in found] == [id_of(service)]
        assert len(await accounts.tokens(every)) == 2
        assert await accounts.tokens([TokenKind.METRICS]) == []


class TestAuditLog:
    async def test_every_change_is_noted_by_whom_and_in_order(self, accounts: AccountStore) -> None:
        await add_workspace(accounts, "lab")
        token = id_of(await add_member(accounts, "lab", "ann", Role.USER))
        await accounts.set_administrator("ann", True, ACT)
        await accounts.revoke_token(token, ACT)
        await accounts.remove_member("lab", "ann", ACT)
        await accounts.remove_workspace("lab", ACT)
        assert await actions(accounts) == [
            "workspace.add lab", "user.add ann", "member.set ann", f"token.add {token}",
            "user.administrator ann", f"token.revoke {token}", "member.remove ann",
            "workspace.remove lab",
        ]  # fmt: skip
        [line, *_] = await accounts.audit_log()
        assert (line.event.act, line.at) == (ACT, NOW)

    async def test_it_is_read_in_pages_and_by_what_is_looked_for(
        self, accounts: AccountStore
    ) -> None:
        events = [
            AuditEvent(act=ACT, action=DENIED, subject=str(n), workspace="lab" if n % 2 else None)
            for n in range(10)
        ]
        await accounts.audit(events)
        await add_user(accounts, "ann")
        page = await accounts.audit_log(limit=4)
        rest = await accounts.audit_log(page[-1].number, 100)
        assert [row.event.subject for row in page + rest] == ["ann", *map(str, range(9, -1, -1))]
        lab = await accounts.audit_log(workspace="lab", action=DENIED)
        assert [row.event.subject for row in lab] == ["9", "7", "5", "3", "1"]
        assert await accounts.audit_log(workspace="lab", action="user.add") == []
        assert len(await accounts.audit_log(action=DENIED)) == 10

    async def test_old_lines_go_and_denials_do_not_push_acts_out(
        self, accounts: AccountStore, clock: ManualClock
    ) -> None:
        await add_user(accounts, "ann")
        await accounts.audit(
            [AuditEvent(act=ACT, action=DENIED, subject=str(n)) for n in range(10)]
        )
        assert await accounts.trim_audit(NOW, 4, 100) == 6
        kept = [row.event.subject for row in await accounts.audit_log()]
        assert kept == ["9", "8", "7", "6", "ann"]
        clock.advance(86_400)
        assert await accounts.trim_audit(NOW + timedelta(hours=1), 4, 3) == 3
        assert await accounts.trim_audit(NOW + timedelta(hours=1), 4, 3) == 2
        assert await accounts.audit_log() == []


async def submit(store: Store, by: str, workspace: str = "lab", **more: object) -> JobRow:
    new = NewJob(
        operation="train", lane="long", input_json="{}", created_by=by, workspace=workspace, **more
    )  # type: ignore[arg-type]
    submitted = await store.submit([new])
    assert isinstance(submitted, list)
    return submitted[0].job


async def claim(store: Store, slots: int = 1) -> list[ClaimedJob]:
    return await store.claim("w1", {"long": slots}, 10.0)


async def get(store: Store, row: JobRow) -> JobRow:
    found = await store.find(row.id)
    assert isinstance(found, JobRow)
    return found


class TestAtTheClaim:
    """Somebody may have lost the right to run a job while it waited."""

    @pytest.fixture
    async def lab(self, accounts: AccountStore) -> AccountStore:
        await add_workspace(accounts, "lab")
        await add_member(accounts, "lab", "ann", Role.USER)
        return accounts

    async def test_who_still_may_is_served(self, store: Store, lab: AccountStore) -> None:
        await add_user(lab, "root", administrator=True)
        await add_token(lab, kind=TokenKind.SERVICE, label="ci", workspace="lab", role=Role.USER)
        rows = [await submit(store, by) for by in ("ann", "root", "service:ci", "local", "system")]
        assert {each.job.id for each in await claim(store, 9)} == {row.id for row in rows}

    async def refused(self, store: Store, row: JobRow, words: str) -> None:
        assert await claim(store) == []
        failed = await get(store, row)
        assert (failed.state, failed.outcome) == (JobState.FAILED, Outcome.FAILED)
        assert failed.error is not None
        assert failed.error.type == "NotAllowed"
        assert words in failed.error.message
        kinds = [event.kind for event in await store.events(row.id)]
        assert kinds == ["submitted", "claimed", "ended"]

    async def test_a_removed_member_s_job_fails(self, store: Store, lab: AccountStore) -> None:
        row = await submit(store, "ann")
        await lab.remove_member("lab", "ann", ACT)
        await self.refused(store, row, "ann is no member of 'lab' any more")

    async def test_a_removed_user_s_job_fails(self, store: Store, lab: AccountStore) -> None:
        row = await submit(store, "ann")
        await lab.remove_user("ann", ACT)
        await self.refused(store, row, "ann is no member of 'lab' any more")

    async def test_a_lowered_role_counts(self, store: Store, lab: AccountStore) -> None:
        row = await submit(store, "ann")
        await lab.set_member("lab", "ann", Role.VIEWER, ACT)
        await self.refused(store, row, "ann is only viewer in 'lab' by now")

    async def test_a_deleted_workspace_counts_for_administrators_too(
        self, store: Store, lab: AccountStore
    ) -> None:
        await add_user(lab, "root", administrator=True)
        row = await submit(store, "root")
        await lab.remove_workspace("lab", ACT)
        await self.refused(store, row, "the workspace 'lab' was deleted")

    async def test_a_revoked_service_token_counts_unless_another_took_its_place(
        self, store: Store, lab: AccountStore
    ) -> None:
        async def service() -> str:
            text = await add_token(
                lab, kind=TokenKind.SERVICE, label="ci", workspace="lab", role=Role.USER
            )
            return id_of(text)

        old, row = await service(), await submit(store, "service:ci")
        new = await service()
        await lab.revoke_token(old, ACT)
        assert [each.job.id for each in await claim(store)] == [row.id]
        row = await submit(store, "service:ci")
        await lab.revoke_token(new, ACT)
        await self.refused(store, row, "the service token 'ci' was revoked")

    async def test_refused_jobs_take_no_places_and_hold_no_keys(
        self, store: Store, lab: AccountStore
    ) -> None:
        await add_member(lab, "lab", "bob", Role.USER)
        refused = [await submit(store, "ann", concurrency_key="gpu") for _ in range(5)]
        served = [await submit(store, "bob", concurrency_key="gpu"), await submit(store, "bob")]
        await lab.remove_member("lab", "ann", ACT)
        claimed = await claim(store, 2)
        assert sorted(each.job.id for each in claimed) == sorted(row.id for row in served)
        for each in claimed:
            await store.end_attempt(each.claim, Finish(outcome=Outcome.SUCCEEDED))
        assert await claim(store, 2) == []
        for row in refused:
            assert (await get(store, row)).state is JobState.FAILED

    async def test_a_backoff_is_no_way_around_it(
        self, store: Store, lab: AccountStore, clock: ManualClock
    ) -> None:
        row = await submit(store, "ann", not_before=NOW + timedelta(hours=1))
        assert row.wait_reason is WaitReason.SCHEDULED
        await lab.remove_member("lab", "ann", ACT)
        assert await claim(store) == []
        assert (await get(store, row)).state is JobState.PENDING
        clock.advance(3600)
        assert await claim(store) == []
        assert (await get(store, row)).state is JobState.FAILED

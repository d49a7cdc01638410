"""Users, workspaces and members. Every change is noted in the audit log with it."""

from __future__ import annotations

from headway.access.accounts import (
    Act,
    LastAdministrator,
    Member,
    Taken,
    Unknown,
    User,
    WasRemoved,
    Workspace,
)
from headway.access.roles import Role
from headway.store.sqlite import audit
from headway.store.sqlite.account_rows import member_from, user_from, workspace_from
from headway.store.sqlite.rows import time_from_us
from headway.store.sqlite.transaction import Transaction


def exist(transaction: Transaction) -> bool:
    return transaction.one("accounts_exist") is not None


# --- users ---


def add_user(
    transaction: Transaction, name: str, administrator: bool, act: Act, returning: bool
) -> User | Taken | WasRemoved:
    removed = transaction.one("removed_user", name=name)
    if removed is not None and not returning:
        return WasRemoved(name=name, removed_at=time_from_us(removed[0]))
    added = transaction.change(
        "insert_user",
        name=name,
        administrator=administrator,
        now_us=transaction.now_us,
        by=act.user,
        returning=returning,
    )
    if not added:
        return Taken(what="user", name=name)
    transaction.change("close_server", now_us=transaction.now_us)
    again = {} if removed is None else {"returning": "yes"}
    audit.note(transaction, act, "user.add", name, administrator=_yes_no(administrator), **again)
    return _existing(transaction, name)


def user(transaction: Transaction, name: str) -> User | None:
    row = transaction.one("user", name=name)
    return None if row is None else user_from(row)


def users(transaction: Transaction) -> list[User]:
    return [user_from(row) for row in transaction.all("users")]


def set_administrator(
    transaction: Transaction, name: str, administrator: bool, act: Act
) -> User | Unknown | LastAdministrator:
    found = user(transaction, name)
    if found is None:
        return Unknown(what="user", name=name)
    if not administrator and _is_last_administrator(transaction, found):
        return LastAdministrator(name=name)
    transaction.change("set_administrator", name=name, administrator=administrator)
    audit.note(transaction, act, "user.administrator", name, administrator=_yes_no(administrator))
    return _existing(transaction, name)


def remove_user(
    transaction: Transaction, name: str, act: Act
) -> User | Unknown | LastAdministrator:
    found = user(transaction, name)
    if found is None:
        return Unknown(what="user", name=name)
    if _is_last_administrator(transaction, found):
        return LastAdministrator(name=name)
    transaction.change("remove_user", name=name, now_us=transaction.now_us)
    transaction.change("remove_members_of_user", user=name)
    transaction.change("revoke_tokens_of_user", user=name, now_us=transaction.now_us, by=act.user)
    audit.note(transaction, act, "user.remove", name)
    return found


def _existing(transaction: Transaction, name: str) -> User:
    found = user(transaction, name)
    assert found is not None
    return found


def _is_last_administrator(transaction: Transaction, found: User) -> bool:
    if not found.administrator:
        return False
    return transaction.one("other_administrators", name=found.name) is None


# --- workspaces ---


def add_workspace(transaction: Transaction, name: str, act: Act) -> Workspace | Taken:
    added = transaction.change(
        "insert_workspace", name=name, now_us=transaction.now_us, by=act.user
    )
    if not added:
        return Taken(what="workspace", name=name)
    audit.note(transaction, act, "workspace.add", name, name)
    found = workspace(transaction, name)
    assert found is not None
    return found


def workspace(transaction: Transaction, name: str) -> Workspace | None:
    row = transaction.one("workspace", name=name)
    return None if row is None else workspace_from(row)


def workspaces(transaction: Transaction) -> list[Workspace]:
    return [workspace_from(row) for row in transaction.all("workspaces")]


def remove_workspace(transaction: Transaction, name: str, act: Act) -> Workspace | Unknown:
    found = workspace(transaction, name)
    if found is None:
        return Unknown(what="workspace", name=name)
    transaction.change("delete_workspace", name=name, now_us=transaction.now_us)
    transaction.change("remove_members_of_workspace", workspace=name)
    transaction.change(
        "revoke_tokens_of_workspace", workspace=name, now_us=transaction.now_us, by=act.user
    )
    audit.note(transaction, act, "workspace.remove", name, name)
    return found


# --- members ---


def members(transaction: Transaction, name: str) -> list[Member]:
    return [member_from(row) for row in transaction.all("members", workspace=name)]


def set_member(
    transaction: Transaction, name: str, member: str, role: Role, act: Act
) -> Member | Unknown:
    if workspace(transaction, name) is None:
        return Unknown(what="workspace", name=name)
    if user(transaction, member) is None:
        return Unknown(what="user", name=member)
    transaction.change("set_member", workspace=name, user=member, role=role.value)
    audit.note(transaction, act, "member.set", member, name, role=role.value)
    return Member(workspace=name, user=member, role=role)


def remove_member(transaction: Transaction, name: str, member: str, act: Act) -> Member | Unknown:
    row = transaction.one("member", workspace=name, user=member)
    if row is None:
        return Unknown(what="member", name=member)
    transaction.change("remove_member", workspace=name, user=member)
    audit.note(transaction, act, "member.remove", member, name)
    return member_from(row)


def _yes_no(value: bool) -> str:
    return "yes" if value else "no"

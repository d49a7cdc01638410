"""Locks: of the jobs that need one, only the head of its line is queued.

A job with a concurrency key needs the lock that its key belongs to, or else the key itself. It
waits in the lock's line, in the order of `fair_share`. As many as the lock has free places are
`queued`, where a claim can take them; the rest are `locked`. So a claim never meets a job that may
not run for its lock, whatever the length of the line, and `why` can name the holders. Jobs of a
workspace or user at a running limit are passed over: they would keep the lock from others.
"""

from __future__ import annotations

from headway.core.states import WaitReason
from headway.store.limits import Lock
from headway.store.sqlite import sharing
from headway.store.sqlite.transaction import Transaction


def admit(transaction: Transaction, lock: str | None) -> bool:
    """Make the head of the lock's line `queued` and the rest `locked`.

    To be called in every transaction that adds to a line, takes from it, or frees a place, and
    when a workspace or user in it reaches a running limit or leaves it. A claim moves one job from
    the head to a place, which changes neither.

    Returns:
        Whether a job became `queued`.
    """
    if lock is None:
        return False
    free = free_places(transaction, lock)
    contention = sharing.lock_contention(transaction, lock, max(free, 1))
    if not contention.workspaces:
        transaction.change("forget_shares", resource=sharing.lock_resource(lock))
        return False
    admitted = {pick.job.sequence for pick in contention.picks(free)}
    queued = {row[0] for row in transaction.all("lock_head", lock=lock)}
    for sequence in queued - admitted:
        _move(transaction, sequence, WaitReason.LOCKED)
    for sequence in admitted - queued:
        _move(transaction, sequence, WaitReason.QUEUED)
    return bool(admitted - queued)


def admit_waiting_of(transaction: Transaction, workspace: str) -> bool:
    """Decide anew about every lock that jobs of this workspace wait for; as `admit`."""
    waited = transaction.all("locks_waited_for", workspace=workspace)
    passed_on = [admit(transaction, lock) for (lock,) in waited]  # every one, so no generator
    return any(passed_on)


def admit_all(transaction: Transaction) -> None:
    """Decide anew about every lock that is waited for."""
    for (lock,) in transaction.all("all_locks_waited_for"):
        admit(transaction, lock)


def charge(transaction: Transaction, lock: str, workspace: str, user: str) -> None:
    """A job of this line is about to be claimed: its workspace's share of the lock is used."""
    contention = sharing.lock_contention(transaction, lock, 1)
    if contention.is_shared:
        contention.charge(workspace, user)
        sharing.save(transaction, sharing.lock_resource(lock), contention)


def places(transaction: Transaction, lock: str) -> int:
    """How many jobs may hold the lock."""
    limit = transaction.one("lock_limit", lock=lock)
    return limit[0] if limit else 1


def free_places(transaction: Transaction, lock: str) -> int:
    """How many more jobs may hold the lock."""
    held = transaction.one("lock_held", lock=lock)
    return max(0, places(transaction, lock) - (held[0] if held else 0))


def set_limit(transaction: Transaction, lock: str, limit: int) -> None:
    """Change how many may hold it; those that do go on."""
    transaction.change("set_lock_limit", lock=lock, max_running=limit)
    admit(transaction, lock)


def all_locks(transaction: Transaction) -> list[Lock]:
    """Every lock that was set up."""
    limits: dict[str, int] = {row[0]: row[1] for row in transaction.all("lock_limits")}
    members: dict[str, list[str]] = {name: [] for name in limits}
    for member, lock in transaction.all("lock_members"):
        members.setdefault(lock, []).append(member)
    return [
        Lock(name=name, max_running=limits.get(name, 1), members=tuple(members[name]))
        for name in sorted(members)
    ]


def set_lock(transaction: Transaction, lock: Lock) -> None:
    """Set a lock up, or change it; jobs that wait or run follow their keys."""
    transaction.change("set_lock_limit", lock=lock.name, max_running=lock.max_running)
    for member, name in transaction.all("lock_members"):
        if name == lock.name and member not in lock.members:
            transaction.change("leave_lock", member=member)
    for member in lock.members:
        transaction.change("join_lock", member=member, lock=lock.name)
    transaction.change("rename_locks")
    admit_all(transaction)


def remove_lock(transaction: Transaction, name: str) -> bool:
    """Make its members locks of their own again, with one place each; False: there is none."""
    removed = transaction.change("forget_lock_limit", lock=name)
    for member, lock in transaction.all("lock_members"):
        if lock == name:
            removed += transaction.change("leave_lock", member=member)
    transaction.change("rename_locks")
    admit_all(transaction)
    return removed > 0


def _move(transaction: Transaction, sequence: int, reason: WaitReason) -> None:
    transaction.change("set_wait_reason", sequence=sequence, wait_reason=reason)

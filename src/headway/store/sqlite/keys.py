"""Concurrency keys: of the jobs with one key, only the head of its line is queued.

A job with a key waits in its key's line, ordered like the queue. As many as the key has free
places are `queued`, where a claim can take them; the rest are `locked`. So a claim never meets a
job that may not run, whatever the length of the line, and `why` can name the holders.
"""

from __future__ import annotations

from headway.core.states import WaitReason
from headway.store.sqlite.transaction import Transaction


def admit(transaction: Transaction, key: str | None) -> None:
    """Make the head of the key's line `queued` and the rest `locked`.

    To be called in every transaction that adds to a line, takes from it, or frees a place. A claim
    moves one job from the head to a place, which changes neither.
    """
    if key is None:
        return
    head = transaction.all("key_line", key=key, limit=free_places(transaction, key))
    admitted = {sequence for sequence, _ in head}
    for (sequence,) in transaction.all("key_head", key=key):
        if sequence not in admitted:
            _move(transaction, sequence, WaitReason.LOCKED)
    for sequence, reason in head:
        if reason != WaitReason.QUEUED:
            _move(transaction, sequence, WaitReason.QUEUED)


def free_places(transaction: Transaction, key: str) -> int:
    """How many more jobs may run with this key."""
    limit = transaction.one("key_limit", key=key)
    held = transaction.one("key_held", key=key)
    return max(0, (limit[0] if limit else 1) - (held[0] if held else 0))


def set_limit(transaction: Transaction, key: str, limit: int) -> None:
    """Change how many may run; those that run already go on."""
    transaction.change("set_key_limit", key=key, max_running=limit)
    admit(transaction, key)


def _move(transaction: Transaction, sequence: int, reason: WaitReason) -> None:
    transaction.change("set_wait_reason", sequence=sequence, wait_reason=reason)

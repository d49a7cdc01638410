"""Who submitted a job is asked once more when it is claimed: may they still? (J11)

In the transaction of the claim, so that nobody is removed between the look and the start. It costs
a few steps by primary key for a creator, and nothing where all jobs are the local user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headway.access.accounts import RESERVED_NAMES, SERVICE_PREFIX
from headway.access.policy import LEAST_ROLE, Permission
from headway.access.roles import Role
from headway.core.failure import ErrorInfo
from headway.core.states import Outcome
from headway.store.attempts import ClaimedJob, Finish
from headway.store.sqlite import claiming, ending, people
from headway.store.sqlite.transaction import Transaction

NOT_ALLOWED = "NotAllowed"
"""The type of the error of a job whose creator may not run it any more."""
_MAX_ROUNDS = 20
_NEEDED = LEAST_ROLE[Permission.RUN]


def claim(
    transaction: Transaction, owner: str, lanes: Mapping[str, int], lease_s: float
) -> list[ClaimedJob]:
    """`claiming.claim`, where jobs whose creator may not run them fail instead of running."""
    claimed = claiming.claim(transaction, owner, lanes, lease_s)
    known: dict[tuple[str, str], str | None] = {}
    allowed: list[ClaimedJob] = []
    for rounds_left in reversed(range(_MAX_ROUNDS)):
        refused = []
        for each in claimed:
            reason = _refusal(transaction, each, known)
            if reason is None:
                allowed.append(each)
            else:
                refused.append(each)
                _fail(transaction, each, reason)
        if not refused or not rounds_left:
            break  # in the second case the next claim goes on
        # Their places are for those who stand behind them.
        places = Counter(each.job.lane for each in refused)
        claimed = claiming.claim(transaction, owner, places, lease_s)
    return allowed


def _refusal(
    transaction: Transaction, claimed: ClaimedJob, known: dict[tuple[str, str], str | None]
) -> str | None:
    """Why the job's creator may not run it; None: it may."""
    creator, workspace = claimed.job.created_by, claimed.job.workspace
    if creator in RESERVED_NAMES:
        return None
    if (creator, workspace) not in known:
        known[creator, workspace] = _reason(transaction, creator, workspace)
    return known[creator, workspace]


def _reason(transaction: Transaction, creator: str, workspace: str) -> str | None:
    if people.workspace(transaction, workspace) is None:
        return f"the workspace {workspace!r} was deleted before the job could run"
    role = _role(transaction, creator, workspace)
    if role.covers(_NEEDED):
        return None
    if role is not Role.NONE:
        return f"{creator} is only {role} in {workspace!r} by now and may not run jobs there"
    if creator.startswith(SERVICE_PREFIX):
        label = creator.removeprefix(SERVICE_PREFIX)
        return f"the service token {label!r} was revoked or has expired meanwhile"
    return f"{creator} is no member of {workspace!r} any more"


def _role(transaction: Transaction, creator: str, workspace: str) -> Role:
    if creator.startswith(SERVICE_PREFIX):
        label = creator.removeprefix(SERVICE_PREFIX)
        rows = transaction.all(
            "live_service_roles", workspace=workspace, label=label, now_us=transaction.now_us
        )
        return max((Role(row[0]) for row in rows), default=Role.NONE, key=list(Role).index)
    user = people.user(transaction, creator)
    if user is not None and user.administrator:
        return Role.ADMIN
    member = transaction.one("member", workspace=workspace, user=creator)
    return Role.NONE if member is None else Role(member[2])


def _fail(transaction: Transaction, claimed: ClaimedJob, reason: str) -> None:
    error = ErrorInfo(type=NOT_ALLOWED, message=reason)
    finish = Finish(outcome=Outcome.FAILED, error=error)
    ended = ending.end_attempt(transaction, claimed.claim, finish)
    assert ended is not None, "what was claimed in this transaction is current"

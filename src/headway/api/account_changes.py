"""What the routes of accounts have in common: who does it, and what a store's answer means."""

from __future__ import annotations

from typing import TypeVar

from fastapi import Request

from headway.access.accounts import (
    RESERVED_NAMES,
    Act,
    LastAdministrator,
    Taken,
    Unknown,
    WasRemoved,
)
from headway.access.identity import Identity
from headway.api.audit_trail import act_of
from headway.api.authenticator import address_of
from headway.api.problems import Refusal

T = TypeVar("T")


def act_by(caller: Identity, request: Request) -> Act:
    """Who changes accounts.

    Raises:
        Refusal: 409; the server has no accounts yet. One made here would lock everybody out, since
            nobody would have a token.
    """
    if caller.via == "local":
        raise Refusal(
            409,
            "this server has no accounts, and everybody who reaches it is its one user;"
            " make the first administrator with `headway admin bootstrap` on its host",
        )
    return act_of(caller, address_of(request.scope))


def done(answer: T | Unknown | Taken | WasRemoved | LastAdministrator) -> T:
    """The changed thing.

    Raises:
        Refusal: 404 or 409; it was not changed.
    """
    if isinstance(answer, Unknown):
        raise Refusal(404, f"there is no {answer.what} {answer.name}")
    if isinstance(answer, Taken):
        ever = "" if answer.what == "user" else ", or was: a name is not given out twice"
        raise Refusal(409, f"there is a {answer.what} {answer.name} already{ever}")
    if isinstance(answer, WasRemoved):
        raise Refusal(
            409,
            f"{answer.name} was the name of a user who was removed on {answer.removed_at:%Y-%m-%d},"
            " and stays on that user's jobs and in the audit log: choose another name, or, when it"
            f" is the same person, `headway admin users add {answer.name} --returning`",
        )
    if isinstance(answer, LastAdministrator):
        raise Refusal(
            409, f"{answer.name} is the last administrator; make another one before this one goes"
        )
    return answer


def check_new_name(name: str) -> None:
    """Refuse names that the server itself uses.

    Raises:
        Refusal: 409.
    """
    if name in RESERVED_NAMES:
        raise Refusal(409, f"{name} is a name that the server itself uses; choose another")

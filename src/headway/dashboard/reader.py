"""Who looks at a page, and what it is offered; what it may do is decided by the server's gate."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from headway.access.identity import Identity
from headway.access.policy import Permission, is_allowed
from headway.api.authenticator import WORKSPACES_KEY


@dataclass(frozen=True)
class Reader:
    """The reader of a page.

    Attributes:
        name: Shown in the corner; None: the server has one user, who need not be told so.
        workspace: Whose jobs the page shows.
        workspaces: All that can be chosen.
        may_run: Whether buttons that start or end something are shown.
        with_runs: Whether the server offers load tests.
    """

    name: str | None = None
    workspace: str = ""
    workspaces: tuple[str, ...] = ()
    may_run: bool = True
    with_runs: bool = True


def reader_of(request: Request, caller: Identity, *, with_runs: bool) -> Reader:
    """The reader who sent this request."""
    known = request.scope.get(WORKSPACES_KEY, {})
    return Reader(
        name=caller.user if caller.via == "session" else None,
        workspace=caller.workspace,
        workspaces=tuple(sorted(known)),
        may_run=is_allowed(caller, Permission.RUN),
        with_runs=with_runs,
    )

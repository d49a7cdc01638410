"""The gate before every route: who asks, and may it? Without a row in the policy nobody may.

It stands around each route and not before all of them, because there the route is known, and
before the route's own code, because that reads the whole body first. It knows who is inside: when
accounts change, streams and waits of those who may not go on are ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headway.access.identity import Identity
from headway.access.policy import LEAST_ROLE, Permission, is_allowed, permission_of
from headway.access.roles import Role
from headway.api.authenticator import KNOWN_KEY, WORKSPACES_KEY, address_of
from headway.api.identity import SCOPE_KEY, Authenticator
from headway.api.problems import Refusal
from headway.core.errors import StoreUnavailable

Denied = Callable[[Identity | None, str, str, int, str | None], None]
"""Told of each denial: who, address, call, status, workspace."""

_DENIALS = frozenset({401, 403, 404, 429})


def _note_nothing(
    identity: Identity | None, address: str, call: str, status: int, workspace: str | None
) -> None:
    """For servers without an audit log."""


def _any_rate(identity: Identity) -> None:
    """For servers that limit no rates."""


@dataclass(eq=False, slots=True)
class _Passage:
    """A request that was let in and is not answered yet."""

    scope: Scope
    identity: Identity
    permission: Permission
    task: asyncio.Task[object]
    ended: bool = False

    def end(self) -> None:
        self.ended = True
        self.task.cancel()


class Gate:
    """Lets through who may.

    Args:
        authenticator: Finds out who asks.
        denied: Told of each denial.
    """

    def __init__(self, authenticator: Authenticator, denied: Denied = _note_nothing) -> None:
        self._authenticator = authenticator
        self._denied = denied
        self._inside: set[_Passage] = set()
        self._looks = 0
        self._check_rate: Callable[[Identity], None] = _any_rate

    def guard(self, routes: Iterable[BaseRoute]) -> None:
        """Stand around each of these routes.

        Raises:
            TypeError: one is of a kind that the gate cannot stand around (a mount, a websocket).
        """
        for route in routes:
            if not isinstance(route, Route):
                raise TypeError(f"the gate cannot guard {route!r}")
            route.app = _Guarded(self, route.path, route.app)

    def limit(self, check_rate: Callable[[Identity], None]) -> None:
        """Let nobody through faster than `check_rate` allows; it refuses who is too fast."""
        self._check_rate = check_rate

    async def admit(self, scope: Scope, template: str) -> _Passage | None:
        """Let the request through, with its identity in the scope.

        Returns:
            What to pass to `leave` when it is answered; None for a route that is open to all.

        Raises:
            Refusal: 400, 401, 403, 404 or 429.
        """
        permission = permission_of(scope["method"], template)
        if permission is Permission.OPEN:
            return None
        identity, looks = None, self._looks
        try:
            identity = await self._authenticator.identify(scope)
            _check(identity, permission)
        except Refusal as refusal:
            if refusal.status in _DENIALS:
                self._note(scope, template, identity, refusal.status)
            raise
        assert permission is not None
        self._check_rate(identity)  # no denial: nobody asked for what is not theirs
        scope[SCOPE_KEY] = identity
        task = asyncio.current_task()
        assert task is not None
        passage = _Passage(scope, identity, permission, task)
        self._inside.add(passage)
        if looks != self._looks and not await self._may_stay(passage):
            # Accounts changed while this one was looked up, and who was inside was asked already.
            self._inside.discard(passage)
            raise Refusal(401, "your access has just ended")
        return passage

    def leave(self, passage: _Passage) -> None:
        """The request is answered."""
        self._inside.discard(passage)

    async def look_again(self) -> None:
        """End the requests of all who may not be inside any more."""
        self._looks += 1
        for passage in list(self._inside):
            if passage in self._inside and not await self._may_stay(passage):
                passage.end()

    async def _may_stay(self, passage: _Passage) -> bool:
        try:
            identity = await self._authenticator.identify(passage.scope)
        except Refusal:
            return False
        except StoreUnavailable:
            return True  # nothing is known; the next look comes soon
        if identity.workspace != passage.identity.workspace:
            # It named none, and would be in another one by now: its role where it is counts.
            roles = passage.scope.get(WORKSPACES_KEY, {})
            role = roles.get(passage.identity.workspace, Role.NONE)
            identity = replace(identity, role=role)
        return is_allowed(identity, passage.permission)

    def _note(self, scope: Scope, template: str, identity: Identity | None, status: int) -> None:
        call = f"{scope['method']} {template}"
        identity = identity or scope.get(KNOWN_KEY)
        workspace = identity.workspace if identity and identity.workspace else None
        self._denied(identity, address_of(scope), call, status, workspace)


class _Guarded:
    """A route's application behind the gate."""

    def __init__(self, gate: Gate, template: str, app: ASGIApp) -> None:
        self._gate = gate
        self._template = template
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        passage = await self._gate.admit(scope, self._template)
        if passage is None:
            await self._app(scope, receive, send)
            return
        started = False

        async def send_noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if not passage.ended:
                raise
            passage.task.uncancel()
            if not started:
                raise Refusal(401, "your access ended while the answer was awaited") from None
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._gate.leave(passage)


def _check(identity: Identity, permission: Permission | None) -> None:
    if permission is not None and is_allowed(identity, permission):
        return
    if permission in LEAST_ROLE and not identity.workspace:
        raise Refusal(
            400,
            "say which workspace you mean, with --workspace or the header Headway-Workspace;"
            " `headway whoami` lists yours",
        )
    raise Refusal(403, _refusal(identity, permission))


def _refusal(identity: Identity, permission: Permission | None) -> str:
    match permission:
        case None:
            return "nobody may do this: it has no place in the server's policy"
        case Permission.ADMINISTER:
            return "only administrators of this server may do this"
        case Permission.SCRAPE:
            return "only administrators and tokens for metrics may read this"
        case _:
            return (
                f"{identity.user} is {identity.role} in the workspace {identity.workspace!r},"
                " which is not enough for this"
            )

"""The gate before every route: who asks, and may it? Without a row in the policy nobody may.

It stands around each route and not before all of them, because there the route is known, and
before the route's own code, because that reads the whole body first.
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headway.access.identity import Identity
from headway.access.policy import Permission, is_allowed, permission_of
from headway.api.identity import SCOPE_KEY, Authenticator
from headway.api.problems import Refusal


class Gate:
    """Lets through who may.

    Args:
        authenticator: Finds out who asks.
    """

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def guard(self, routes: Iterable[BaseRoute]) -> None:
        """Stand around each of these routes.

        Raises:
            TypeError: one is of a kind that the gate cannot stand around (a mount, a websocket).
        """
        for route in routes:
            if not isinstance(route, Route):
                raise TypeError(f"the gate cannot guard {route!r}")
            route.app = _Guarded(self, route.path, route.app)

    async def admit(self, scope: Scope, template: str) -> None:
        """Let the request through, with its identity in the scope.

        Raises:
            Refusal: 401, 403, 404 or 429.
        """
        permission = permission_of(scope["method"], template)
        if permission is Permission.OPEN:
            return
        identity = await self._authenticator.identify(scope)
        if permission is None or not is_allowed(identity, permission):
            raise Refusal(403, _refusal(identity, permission))
        scope[SCOPE_KEY] = identity


class _Guarded:
    """A route's application behind the gate."""

    def __init__(self, gate: Gate, template: str, app: ASGIApp) -> None:
        self._gate = gate
        self._template = template
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gate.admit(scope, self._template)
        await self._app(scope, receive, send)


def _refusal(identity: Identity, permission: Permission | None) -> str:
    match permission:
        case None:
            return "nobody may do this: it has no place in the server's policy"
        case Permission.ADMINISTER:
            return "only administrators of this server may do this"
        case Permission.SCRAPE:
            return "only administrators and tokens for metrics may read this"
        case _:
            where = f"in the workspace {identity.workspace!r}" if identity.workspace else "anywhere"
            return f"{identity.user} is {identity.role} {where}, which is not enough for this"

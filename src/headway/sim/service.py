"""The simulated server's service: checks the key, picks the faults, routes."""

from __future__ import annotations

import hmac

from headway.core.errors import ConfigError
from headway.sim.answers import send_refusal
from headway.sim.exchange import Exchange, Route
from headway.sim.faults import HEADER, NO_FAULTS, FaultPlan, Faults
from headway.sim.http import Connection, Request
from headway.sim.messages import Refusal
from headway.sim.precise_timer import PreciseTimer

_OPEN_PATHS = frozenset((b"/health", b"/metrics"))


class Routes:
    """Which path is answered by what."""

    def __init__(self) -> None:
        self.generating: dict[bytes, Route] = {}
        """Those that ask the model for something, by POST; faults strike them."""
        self.plain: dict[bytes, tuple[bytes, Route]] = {}
        """All others, with their method."""

    def find(self, path: bytes, method: bytes) -> Route | Refusal:
        """The plain route of a request, or why there is none."""
        if path in self.generating:
            return Refusal(405, "Use POST here.")
        if path not in self.plain:
            return Refusal(404, f"There is nothing at {path.decode('latin-1')}.")
        allowed, route = self.plain[path]
        if method == allowed or (method, allowed) == (b"HEAD", b"GET"):
            return route
        return Refusal(405, f"Use {allowed.decode()} here.")


class SimService:
    """What every connection hands its requests to.

    Args:
        routes: Which path is answered by what.
        plan: Decides each request's faults.
        timer: For stalls.
        api_key: What `Authorization: Bearer` must hold; None lets everybody in.
    """

    def __init__(
        self, routes: Routes, plan: FaultPlan, timer: PreciseTimer, api_key: str | None
    ) -> None:
        self._routes = routes
        self._plan = plan
        self._timer = timer
        self._authorization = f"Bearer {api_key}".encode() if api_key else None
        self.connections: set[Connection] = set()

    def connected(self, connection: Connection) -> None:
        self.connections.add(connection)

    def disconnected(self, connection: Connection) -> None:
        self.connections.discard(connection)

    def handle(self, request: Request, connection: Connection) -> None:
        """Answer `request`, or start to."""
        path = request.path.partition(b"?")[0]
        generate = self._routes.generating.get(path)
        try:
            faults = self._plan.next(request.headers.get(HEADER), generate is not None)
        except ConfigError as error:
            send_refusal(connection, Refusal(400, f"x-sim-fault: {error}."))
            return
        if self._authorization is not None and not self._let_in(request, path):
            faults = Faults(status=401)
        exchange = Exchange(request, connection, faults)
        if generate is not None and request.method == b"POST":
            generate(exchange)
        else:
            self._answer_plain(exchange, self._routes.find(path, request.method))

    def _answer_plain(self, exchange: Exchange, route: Route | Refusal) -> None:
        if exchange.faults is NO_FAULTS and not isinstance(route, Refusal):
            route(exchange)
            return

        def act() -> None:
            if exchange.faults.replaces_answer:
                exchange.send_broken()
            elif isinstance(route, Refusal):
                send_refusal(exchange.connection, route)
            else:
                route(exchange)

        exchange.after_stall(self._timer, act)

    def _let_in(self, request: Request, path: bytes) -> bool:
        assert self._authorization is not None
        given = request.headers.get(b"authorization", b"")
        return path in _OPEN_PATHS or hmac.compare_digest(given, self._authorization)

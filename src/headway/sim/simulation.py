"""The parts of one simulated server, put together."""

from __future__ import annotations

import asyncio

from headway.core.clock import SystemClock
from headway.sim.chat import ChatDialect
from headway.sim.completions import CompletionsDialect
from headway.sim.embeddings import EmbeddingsDialect
from headway.sim.exact import ExactEngine
from headway.sim.faults import FaultPlan, parse_rule
from headway.sim.freezing import Freezer
from headway.sim.generating import Generating, ReplyPlanner
from headway.sim.generation import Engine
from headway.sim.http import Connection
from headway.sim.metrics import SimMetrics
from headway.sim.modelled import ModelledEngine
from headway.sim.options import SimOptions
from headway.sim.plain import plain_routes
from headway.sim.precise_timer import PreciseTimer
from headway.sim.responses import ResponsesDialect
from headway.sim.service import Routes, SimService
from headway.sim.truth import Truth, TruthLog


class Simulation:
    """Everything but the process and its sockets.

    Args:
        options: What it is told.
        loop: The event loop that it runs on.

    Raises:
        ConfigError: a fault cannot be read.
        OSError: the truth log cannot be opened.
    """

    def __init__(self, options: SimOptions, loop: asyncio.AbstractEventLoop) -> None:
        plan = FaultPlan([parse_rule(text) for text in options.faults], options.seed)
        self.timer = PreciseTimer(loop)
        self.truth_log = TruthLog(options.truth_log)
        engine = _make_engine(options, self.timer)
        self._freezer = Freezer(options.freezes, self.timer)
        planner = ReplyPlanner(options.reply, options.seed)
        self._generating = Generating(
            planner, engine, self.timer, self._account, self._freezer.first_request
        )
        self._metrics = SimMetrics(engine.statistics, self._generating.in_flight)
        routes = self._routes(options)
        self.service = SimService(routes, plan, self.timer, options.listen.api_key)

    def new_connection(self) -> Connection:
        """A connection's protocol."""
        return Connection(self.service)

    def thaw(self) -> None:
        """End a freeze; may be called from a signal's handler."""
        self._freezer.thaw()

    def end(self) -> None:
        """Close every connection and complete the truth log."""
        self._generating.abandon_all()
        for connection in list(self.service.connections):
            connection.reset()
        self.timer.close()
        self.truth_log.close()

    def _account(self, truth: Truth) -> None:
        self._metrics.count(truth)
        self.truth_log.add(truth)

    def _routes(self, options: SimOptions) -> Routes:
        created = int(SystemClock().now().timestamp())
        route = self._generating.route
        routes = Routes()
        routes.generating = {
            b"/v1/chat/completions": route(ChatDialect(created, options.reply.reasoning_field)),
            b"/v1/completions": route(CompletionsDialect(created)),
            b"/v1/responses": route(ResponsesDialect(created)),
            # Each reply is another one: nothing to keep.
            b"/v1/embeddings": route(
                EmbeddingsDialect(options.reply.embedding_dimensions), shapes=0
            ),
        }
        routes.plain = {
            **plain_routes(options.reply, created),
            b"/metrics": (b"GET", self._metrics.answer),
            b"/sim/freeze": (b"POST", self._freezer.answer),
        }
        return routes


def _make_engine(options: SimOptions, timer: PreciseTimer) -> Engine:
    if options.mode == "modelled":
        return ModelledEngine(options.model, timer)
    return ExactEngine(options.exact, timer, options.seed)

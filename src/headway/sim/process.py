"""The simulated server as a process: starts, announces itself, ends in bounded time."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import ssl
import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headway.core.clock import SystemClock
from headway.core.errors import ConfigError
from headway.sim.arguments import parse_arguments
from headway.sim.chat import ChatDialect
from headway.sim.exact import ExactEngine
from headway.sim.faults import FaultPlan, parse_rule
from headway.sim.generating import Generating, ReplyPlanner
from headway.sim.generation import Engine
from headway.sim.http import Connection
from headway.sim.options import ListenOptions, SimOptions
from headway.sim.plain import plain_routes
from headway.sim.precise_timer import PreciseTimer
from headway.sim.service import Routes, SimService
from headway.sim.truth import Truth, TruthLog

_FLUSH_INTERVAL_S = 0.25


def main(argv: Sequence[str]) -> int:
    """Run a simulated server until SIGTERM or SIGINT; returns the exit code."""
    try:
        options = parse_arguments(argv)
        return _new_loop_runner()(lambda: _serve(options))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"headway sim: {error}\n")
        return 2


def _new_loop_runner() -> Callable[[Callable[[], Any]], int]:
    try:
        import uvloop
    except ImportError:
        return lambda make: asyncio.run(make())

    def run(make: Callable[[], Any]) -> int:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            result: int = runner.run(make())
            return result

    return run


class _Simulation:
    """The parts of one server, put together."""

    def __init__(self, options: SimOptions, loop: asyncio.AbstractEventLoop) -> None:
        self.timer = PreciseTimer(loop)
        self.truth_log = TruthLog(options.truth_log)
        created = int(SystemClock().now().timestamp())
        self.generating = Generating(
            ReplyPlanner(options.reply, options.seed),
            self._make_engine(options),
            self.timer,
            self._account,
        )
        routes = Routes()
        chat = ChatDialect(created, options.reply.reasoning_field)
        routes.generating[b"/v1/chat/completions"] = self.generating.route(chat)
        routes.plain |= plain_routes(options.reply, created)
        plan = FaultPlan([parse_rule(text) for text in options.faults], options.seed)
        self.service = SimService(routes, plan, self.timer, options.listen.api_key)

    def _make_engine(self, options: SimOptions) -> Engine:
        return ExactEngine(options.exact, self.timer, options.seed)

    def _account(self, truth: Truth) -> None:
        self.truth_log.add(truth)

    def end(self) -> None:
        """Close every connection and complete the truth log."""
        self.generating.abandon_all()
        for connection in list(self.service.connections):
            connection.reset()
        self.timer.close()
        self.truth_log.close()


async def _serve(options: SimOptions) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    simulation = _Simulation(options, loop)
    server = await _listen(options.listen, loop, lambda: Connection(simulation.service))
    _announce(options.listen, server)
    # What is alive now stays: a full collection over it would delay tokens by milliseconds.
    gc.collect()
    gc.freeze()
    try:
        while not stop.is_set():
            simulation.truth_log.flush()
            try:
                await asyncio.wait_for(stop.wait(), _FLUSH_INTERVAL_S)
            except TimeoutError:
                continue
    finally:
        server.close()
        simulation.end()
    return 0


async def _listen(
    listen: ListenOptions,
    loop: asyncio.AbstractEventLoop,
    make_connection: Callable[[], Connection],
) -> asyncio.Server:
    context = _tls_context(listen)
    if listen.uds is not None:
        return await loop.create_unix_server(make_connection, str(listen.uds), ssl=context)
    return await loop.create_server(
        make_connection, listen.host, listen.port, ssl=context, backlog=4096
    )


def _tls_context(listen: ListenOptions) -> ssl.SSLContext | None:
    if listen.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(listen.tls_cert, listen.tls_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _announce(listen: ListenOptions, server: asyncio.Server) -> None:
    ready: dict[str, Any] = {"event": "ready", "pid": os.getpid()}
    scheme = "https" if listen.tls_cert else "http"
    if listen.uds is not None:
        ready |= {"url": f"{scheme}://localhost", "uds": str(listen.uds)}
    else:
        port = server.sockets[0].getsockname()[1]
        host = f"[{listen.host}]" if ":" in listen.host else listen.host
        ready |= {"url": f"{scheme}://{host}:{port}", "port": port}
    sys.stdout.write(msgspec.json.encode(ready).decode() + "\n")
    sys.stdout.flush()

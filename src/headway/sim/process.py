"""The simulated server as a process: starts, announces itself, ends in bounded time."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import FrameType
from typing import Any

import msgspec

from headway.core.errors import ConfigError
from headway.sim.arguments import parse_arguments
from headway.sim.options import ListenOptions, SimOptions
from headway.sim.parent import ParentWatch
from headway.sim.simulation import Simulation
from headway.sim.slow_accept import SlowAcceptor

_FLUSH_INTERVAL_S = 0.25
"""How old the truth log's last lines are at most: one short write each time."""


def main(argv: Sequence[str]) -> int:
    """Run a simulated server until SIGTERM or SIGINT; returns the exit code."""
    try:
        options = parse_arguments(argv)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_serve(options))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"headway sim: {error}\n")
        return 2


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None  # asyncio's own
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


async def _serve(options: SimOptions) -> int:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    with ExitStack() as stack:
        simulation = Simulation(options, loop)
        _stop_on_signals(loop, stop, simulation)
        stack.callback(simulation.end)
        if options.die_with_parent:
            stack.callback(ParentWatch(loop, stop.set).close)
        close, address = await _listen(options.listen, simulation)
        stack.callback(close)
        _announce(options.listen, address)
        # What is alive now stays: a full collection over it would delay tokens by milliseconds.
        gc.collect()
        gc.freeze()
        while not stop.is_set():
            simulation.truth_log.flush()
            try:
                await asyncio.wait_for(stop.wait(), _FLUSH_INTERVAL_S)
            except TimeoutError:
                continue
    return 0


def _stop_on_signals(
    loop: asyncio.AbstractEventLoop, stop: asyncio.Event, simulation: Simulation
) -> None:
    # Not by loop.add_signal_handler: a frozen loop would not run it.
    def handle(number: int, frame: FrameType | None) -> None:
        simulation.thaw()
        loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


async def _listen(
    listen: ListenOptions, simulation: Simulation
) -> tuple[Callable[[], None], tuple[Any, ...] | str]:
    """Listen; returns what ends it, and the address."""
    loop = asyncio.get_running_loop()
    tls = _tls_context(listen)
    listener = _listening_socket(listen)
    address = listener.getsockname()
    if listen.accept_delay_s:
        acceptor = SlowAcceptor(listener, simulation.new_connection, listen.accept_delay_s, tls)
        return acceptor.close, address
    make: Any = loop.create_server if listen.uds is None else loop.create_unix_server
    server = await make(simulation.new_connection, sock=listener, ssl=tls, backlog=listen.backlog)
    return server.close, address


def _listening_socket(listen: ListenOptions) -> socket.socket:
    if listen.uds is not None:
        listener = socket.socket(socket.AF_UNIX)
        listen.uds.unlink(missing_ok=True)
        listener.bind(str(listen.uds))
    else:
        listener = socket.socket(socket.AF_INET6 if ":" in listen.host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((listen.host, listen.port))
        except OSError as error:
            listener.close()
            raise ConfigError(
                f"cannot listen on {listen.host}:{listen.port}: {error.strerror}; choose another "
                "--host or --port"
            ) from error
    listener.listen(listen.backlog)
    listener.setblocking(False)
    return listener


def _tls_context(listen: ListenOptions) -> ssl.SSLContext | None:
    if listen.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(listen.tls_cert, listen.tls_key)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _announce(listen: ListenOptions, address: tuple[Any, ...] | str) -> None:
    ready: dict[str, Any] = {"event": "ready", "pid": os.getpid()}
    scheme = "https" if listen.tls_cert else "http"
    if isinstance(address, str):
        ready |= {"url": f"{scheme}://localhost", "uds": address}
    else:
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        ready |= {"url": f"{scheme}://{host}:{address[1]}", "port": address[1]}
    sys.stdout.write(msgspec.json.encode(ready).decode() + "\n")
    sys.stdout.flush()

"""An open loop with nothing around it: a timerfd, uvloop, httptools, and one timestamp a read.

It shows how exact pacing and timing can be here, with the same server and the same load.
"""

from __future__ import annotations

import asyncio
import time

import httptools

from headway.load.pacing import TimerfdAlarm

NS_PER_S = 1_000_000_000


class PacedConnection(asyncio.Protocol):
    """One request at a time; goes back to the pool when its reply is whole."""

    def __init__(self, load: PacedLoad) -> None:
        self.load = load
        self.parser = httptools.HttpResponseParser(self)
        self.transport: asyncio.Transport | None = None
        self.sent_ns = 0
        self.read_ns = 0
        self.first_token_ns = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def send(self, due_ns: int) -> None:
        self.first_token_ns = 0
        self.sent_ns = time.monotonic_ns()
        self.load.late_ns.append(self.sent_ns - due_ns)
        assert self.transport is not None
        self.transport.write(self.load.request)

    def data_received(self, data: bytes) -> None:
        self.read_ns = time.monotonic_ns()
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self.first_token_ns = self.first_token_ns or self.read_ns

    def on_message_complete(self) -> None:
        self.load.ended(self)


class PacedLoad:
    """`count` requests at `rate` a second; connections are opened before the first one."""

    def __init__(self, request: bytes, rate: float, count: int) -> None:
        self.request = request
        self.late_ns: list[int] = []
        self.times_ns: list[tuple[int, int]] = []
        """When each request that ended was sent, and when its first token came."""
        self._gap_ns = NS_PER_S / rate
        self._count = count
        self._idle: list[PacedConnection] = []
        self._next = 0
        self._start_ns = 0
        self._done = asyncio.Event()
        self._alarm = TimerfdAlarm(self._fire)

    async def run(self, port: int, connections: int) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(connections):
            _, connection = await loop.create_connection(
                lambda: PacedConnection(self), "127.0.0.1", port
            )
            self._idle.append(connection)
        self._start_ns = time.monotonic_ns() + 20_000_000
        self._alarm.set(self._start_ns)
        await self._done.wait()
        self._alarm.close()

    def ended(self, connection: PacedConnection) -> None:
        self.times_ns.append((connection.sent_ns, connection.first_token_ns))
        self._idle.append(connection)
        if len(self.times_ns) == self._count:
            self._done.set()

    def _due_ns(self) -> int:
        return self._start_ns + round(self._next * self._gap_ns)

    def _fire(self) -> None:
        now_ns = time.monotonic_ns()
        while self._next < self._count and self._due_ns() <= now_ns:
            self._idle.pop().send(self._due_ns())
            self._next += 1
        if self._next < self._count:
            self._alarm.set(self._due_ns())

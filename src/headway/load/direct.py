"""The requests of one stage that no coroutine carries: sent by a call, taken in by batches.

Replies that end in the same iteration of the event loop are stamped first, all of them, and looked
at afterwards: decoding one before the next is read would move the next one's times (trap 43).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from headway.backends.direct import DirectPath
from headway.load.lifecycle import Request
from headway.wire.exchange import Exchange


class DirectRequests:
    """Sends, and hands over what has ended.

    Args:
        path: The backend's way.
        on_ended: Called with the requests whose exchange has ended, once an iteration.
    """

    def __init__(self, path: DirectPath, on_ended: Callable[[list[Request]], None]) -> None:
        self._path = path
        self._begin = path.begin
        self.read = path.read
        """(exchange, progress) to the answer; raises what the backend raises."""
        self._on_ended = on_ended
        self._call_soon = asyncio.get_running_loop().call_soon
        self._ended: list[Request] = []

    def send(self, request: Request) -> bool:
        """Send a request; False when a coroutine has to."""
        turn = request.turn
        if turn.input_error is not None:
            return False
        try:
            request.exchange = self._begin(turn.call, turn.history, request, self._exchange_ended)
        except Exception:  # noqa: BLE001  the backend's own way says what is wrong
            return False
        return request.exchange is not None

    def hand_over(self) -> None:
        """Hand over what has ended."""
        ended, self._ended = self._ended, []
        if ended:
            self._on_ended(ended)

    def must_be_finished(self, exchange: Exchange) -> bool:
        """Whether an exchange that failed is to be sent once more, by `finish`."""
        return self._path.must_be_finished(exchange)

    async def finish(self, exchange: Exchange) -> None:
        """Send it once more; returns when that is over."""
        await self._path.finish(exchange)

    def abandon(self, exchange: Exchange) -> bool:
        """Nobody waits for it any more; False when a task carries it, or it has ended."""
        return self._path.abandon(exchange)

    def _exchange_ended(self, exchange: Exchange) -> None:
        if not self._ended:
            self._call_soon(self.hand_over)
        self._ended.append(cast(Request, exchange.owner))

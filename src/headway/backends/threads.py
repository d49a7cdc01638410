"""A bounded set of threads for blocking calls, which the process can leave behind.

`ThreadPoolExecutor` joins its threads when the interpreter ends: a call that never returns would
keep a load worker alive for ever. These are daemon threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Work = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class DaemonThreads:
    """Runs blocking functions, each in a thread; threads start when they are needed.

    Args:
        limit: Most threads, so most functions at once; further ones wait in line.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._started = 0
        self._busy = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """The function's result, or the exception it raised.

        Cancelling leaves the function to run to its end; its thread is busy until then.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._busy >= self._started and self._started < self._limit:
            self._started += 1
            name = f"blocking-call-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        self._busy += 1
        self._work.put((loop, future, function))
        return await future

    def close(self) -> None:
        """Let idle threads end; busy ones end after their function."""
        for _ in range(self._started):
            self._work.put(None)
        self._started = 0

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            loop, future, function = work
            result, error = None, None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001  # handed to whoever awaits it
                error = raised
            try:
                loop.call_soon_threadsafe(self._settle, future, result, error)
            except RuntimeError:
                return  # the event loop is closed: nobody waits any more

    def _settle(
        self, future: asyncio.Future[Any], result: Any, error: BaseException | None
    ) -> None:
        self._busy -= 1
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            future.set_exception(error)
        else:
            # Such an exception would leave the event loop instead of the await.
            future.set_exception(RuntimeError(f"the function raised {error!r}"))

"""A Python callable as the target: for servers with a client library of their own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

from headway.backends.backend import Answer, Call, Message, Progress, TargetInfo
from headway.backends.http_progress import fail_at_now
from headway.backends.spec import PythonBackendSpec, TimeoutSpec
from headway.backends.threads import DaemonThreads
from headway.core.clock import monotonic_ns
from headway.core.plugins import import_callable
from headway.records.record import Failure


class PythonBackend:
    """Calls `module:function` with the call's input row, or its text where there is no row.

    A coroutine function is awaited, an async generator's items are the reply's chunks, and a
    plain function runs in a thread. What they return is the reply's text, or a mapping with
    `text`, `input_tokens` and `output_tokens`.
    """

    def __init__(self, spec: PythonBackendSpec, timeouts: TimeoutSpec) -> None:
        self._name = spec.function
        self._timeouts = timeouts
        self._threads = DaemonThreads(spec.threads)
        self._function: Callable[[Any], Any] | None = None

    async def startup(self) -> None:
        self._function = import_callable(self._name)

    async def validate(self) -> TargetInfo:
        """Calls nothing: only the user knows what a call does."""
        return TargetInfo(url=f"python:{self._name}")

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        argument = call.variables if call.variables is not None else call.as_text()
        limit = asyncio.timeout(self._timeouts.total_s)
        try:
            async with limit:
                await self._call(argument, progress)
        except TimeoutError:
            fail_at_now(progress)
            if not limit.expired():
                raise  # the callable's own
            text = f"no whole reply within {self._timeouts.total_s:g} s (total)"
            return Answer(failure=Failure(category="timeout", message=text))
        except Exception:
            fail_at_now(progress)
            raise
        return Answer(message=Message("assistant", progress.text or ""))

    async def shutdown(self) -> None:
        self._threads.close()

    async def _call(self, argument: Any, progress: Progress) -> None:
        function = self._function
        assert function is not None
        if inspect.isasyncgenfunction(function):
            await _stream(function(argument), progress)
            return
        if inspect.iscoroutinefunction(function):
            progress.sent_ns = monotonic_ns()
            result = await function(argument)
            progress.done_ns = monotonic_ns()
        else:
            result = await self._call_in_thread(partial(function, argument), progress)
        _keep(result, progress)

    async def _call_in_thread(self, function: Callable[[], Any], progress: Progress) -> Any:
        asked_ns = monotonic_ns()

        def timed() -> tuple[Any, int]:
            # Stamped in the thread: waiting for one is not the target's time (trap 44).
            progress.sent_ns = monotonic_ns()
            result = function()
            return result, monotonic_ns()

        try:
            result, progress.done_ns = await self._threads.run(timed)
        finally:
            if progress.sent_ns is not None:
                progress.pool_wait_ns = progress.sent_ns - asked_ns
        return result


async def _stream(chunks: AsyncIterator[Any], progress: Progress) -> None:
    texts: list[str] = []
    progress.chunks = 0
    progress.gaps_ns = gaps_ns = []
    progress.sent_ns = monotonic_ns()
    try:
        async for chunk in chunks:
            now_ns = monotonic_ns()
            if not chunk:
                continue
            if progress.last_token_ns is None:
                progress.first_byte_ns = progress.first_token_ns = now_ns
                progress.first_content_ns = now_ns
            else:
                gaps_ns.append(now_ns - progress.last_token_ns)
            progress.last_token_ns = now_ns
            progress.chunks += 1
            texts.append(str(chunk))
        progress.done_ns = monotonic_ns()
    finally:
        progress.text = "".join(texts)
        progress.output_tokens = progress.chunks
        progress.output_tokens_source = "chunks"


def _keep(result: Any, progress: Progress) -> None:
    if isinstance(result, Mapping):
        progress.input_tokens = result.get("input_tokens")
        progress.output_tokens = result.get("output_tokens")
        result = result.get("text")
    if progress.output_tokens is not None:
        progress.output_tokens_source = "usage"
    progress.text = None if result is None else str(result)

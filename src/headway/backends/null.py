"""No target at all: what is left to measure is the scheduler itself."""

from __future__ import annotations

import asyncio

from headway.backends.backend import Answer, Call, Message, Progress, TargetInfo
from headway.backends.spec import NullBackendSpec
from headway.core.clock import monotonic_ns


class NullBackend:
    """Answers by itself after the asked latency, in evenly spaced chunks."""

    def __init__(self, spec: NullBackendSpec) -> None:
        self._step_s = spec.latency_s / spec.chunks
        self._chunks = spec.chunks

    async def startup(self) -> None:
        """Nothing to acquire."""

    async def validate(self) -> TargetInfo:
        return TargetInfo(model="null")

    async def resolve(self, call: Call, history: tuple[Message, ...], progress: Progress) -> Answer:
        progress.sent_ns = monotonic_ns()
        progress.gaps_ns = gaps_ns = []
        progress.chunks = 0
        for _ in range(self._chunks):
            await asyncio.sleep(self._step_s)
            now_ns = monotonic_ns()
            if progress.last_token_ns is None:
                progress.first_byte_ns = progress.first_token_ns = now_ns
                progress.first_content_ns = now_ns
            else:
                gaps_ns.append(now_ns - progress.last_token_ns)
            progress.last_token_ns = now_ns
            progress.chunks += 1
            progress.output_tokens = progress.chunks
            progress.output_tokens_source = "chunks"
        progress.done_ns = progress.last_token_ns
        progress.finish_reason = "stop"
        return Answer(message=Message("assistant", ""))

    async def shutdown(self) -> None:
        """Nothing to release."""

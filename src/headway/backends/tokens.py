"""Asking a target how many tokens it counts in an input, before a run.

Two ways: its `/tokenize` endpoint (vLLM, SGLang, the simulated server), or the `usage` of a
one-token reply. The first is trusted only where it agrees with the second: some servers leave
out the chat template, and prompts made by such counts would be too long by a constant.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import msgspec

from headway.backends.backend import Call, Progress
from headway.backends.endpoint import Endpoint
from headway.backends.openai import OpenAIBackend
from headway.backends.openai_chat import as_field
from headway.backends.registry import create_openai
from headway.backends.spec import BackendSpec, OpenAIBackendSpec, TargetSpec
from headway.core.errors import TargetError

_SAMPLE = Call(prompt="How many tokens are there in this line?")
_MAX_OUTPUT_TOKENS = 1


class TokenCounter(Protocol):
    """Counts the input tokens of calls."""

    @property
    def source(self) -> Literal["tokenize", "usage"]:
        """How it knows; goes into the report."""
        ...

    async def count(self, call: Call) -> int:
        """Input tokens that the target would report for `call`, sent alone.

        Raises:
            TargetError: the target did not answer with a count.
        """
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


class _Count(msgspec.Struct):
    count: int


class TokenizeCounter:
    """Asks `/tokenize`: exact, and no inference."""

    source: Literal["tokenize"] = "tokenize"

    def __init__(self, endpoint: Endpoint, model: str | None, is_chat: bool) -> None:
        self._endpoint = endpoint
        self._model = model
        self._is_chat = is_chat

    async def count(self, call: Call) -> int:
        exchange = await self._endpoint.ask(
            "POST",
            f"{self._endpoint.root_path}/tokenize",
            msgspec.json.encode(self._question(call)),
        )
        if exchange.status == 200 and exchange.failure is None:
            try:
                return msgspec.json.decode(exchange.body, type=_Count).count
            except msgspec.DecodeError:
                pass
        raise TargetError(f"{self._endpoint.origin.url} has no /tokenize that counts tokens")

    async def close(self) -> None:
        await self._endpoint.shutdown()

    def _question(self, call: Call) -> dict[str, Any]:
        model = {} if self._model is None else {"model": self._model}
        if not self._is_chat:
            return {**model, "prompt": call.as_text()}
        messages = [as_field(message) for message in call.as_messages()]
        return {**model, "messages": messages, "add_generation_prompt": True}


class UsageCounter:
    """Asks for a reply of one token and reads its `usage`."""

    source: Literal["usage"] = "usage"

    def __init__(self, backend: OpenAIBackend) -> None:
        self._backend = backend

    async def count(self, call: Call) -> int:
        progress = Progress()
        short = msgspec.structs.replace(call, output_tokens=_MAX_OUTPUT_TOKENS)
        answer = await self._backend.resolve(short, (), progress)
        if answer.failure is not None:
            raise TargetError(f"the target did not count tokens: {answer.failure.message}")
        if progress.input_tokens is None:
            raise TargetError("the target reports no usage, so it does not say how it counts")
        return progress.input_tokens

    async def close(self) -> None:
        await self._backend.shutdown()


async def open_token_counter(target: TargetSpec, backend: BackendSpec) -> TokenCounter | None:
    """The best way that the target offers to count tokens.

    Returns:
        None when it offers none, or the backend knows no tokens.

    Raises:
        ConfigError, TargetError: the target cannot be used at all.
    """
    if not isinstance(backend, OpenAIBackendSpec):
        return None
    unstreamed = backend.model_copy(update={"stream": False})
    asking = create_openai(unstreamed, target)
    endpoint = Endpoint(target)
    try:
        await asking.startup()
        model = (await asking.validate()).model
        is_chat = backend.kind in ("openai-chat", "openai-responses")
        tokenize = TokenizeCounter(endpoint, model, is_chat)
        usage = UsageCounter(asking)
        await endpoint.startup()
        chosen = await _choose(tokenize, usage)
    except BaseException:
        await asking.shutdown()
        await endpoint.shutdown()
        raise
    for counter in (tokenize, usage):
        if counter is not chosen:
            await counter.close()
    return chosen


async def _choose(tokenize: TokenizeCounter, usage: UsageCounter) -> TokenCounter | None:
    by_endpoint = await _try(tokenize)
    by_usage = await _try(usage)
    if by_endpoint is not None and by_usage in (None, by_endpoint):
        return tokenize
    return None if by_usage is None else usage


async def _try(counter: TokenCounter) -> int | None:
    try:
        return await counter.count(_SAMPLE)
    except TargetError:
        return None

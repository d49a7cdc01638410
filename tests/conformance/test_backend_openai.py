"""The OpenAI backends against the simulated server and against exact bytes (L9, L13)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headway.backends.backend import Answer, Backend, Call, Message, Progress
from headway.backends.registry import create_backend
from headway.backends.spec import OpenAIBackendSpec, TargetSpec, TimeoutSpec
from headway.core.errors import TargetError

HELLO = Call(prompt="hello there", output_tokens=6)
KINDS = ["openai-chat", "openai-completions", "openai-responses"]

Started = Callable[..., Awaitable[Backend]]


@pytest.fixture
async def started() -> AsyncIterator[Started]:
    """A factory of started backends: `await started(url, kind=..., model=..., api_key_env=...)`."""
    backends: list[Backend] = []

    async def start(url: str, **options: Any) -> Backend:
        fields = OpenAIBackendSpec.model_fields
        spec = OpenAIBackendSpec(**{k: v for k, v in options.items() if k in fields})
        target = TargetSpec(url=url, **{k: v for k, v in options.items() if k not in fields})
        backend = create_backend(spec, target)
        await backend.startup()
        backends.append(backend)
        return backend

    yield start
    for backend in backends:
        await backend.shutdown()


async def ask(
    backend: Backend, call: Call = HELLO, history: tuple[Message, ...] = ()
) -> tuple[Answer, Progress]:
    progress = Progress()
    return await backend.resolve(call, history, progress), progress


def sse(*events: dict[str, Any] | str) -> list[bytes]:
    texts = [one if isinstance(one, str) else f"data: {json.dumps(one)}\n\n" for one in events]
    return [text.encode() for text in texts]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


# --- against the simulated server ----------------------------------------------------------------


@pytest.mark.parametrize("transport", ["fast", "aiohttp"])
async def test_a_streamed_reply_is_measured(sim: Any, started: Started, transport: str) -> None:
    server = sim(ttft=0.03, itl=0.01)
    for kind in KINDS:
        backend = await started(server.url, kind=kind, transport=transport)
        info = await backend.validate()
        assert info.model in info.models
        answer, progress = await ask(backend)
        assert answer.failure is None
        assert answer.message is not None
        assert answer.message.content == progress.text
        assert len(progress.text or "") > 10
        assert (progress.input_tokens or 0) > 0
        assert progress.finish_reason in ("length", "max_output_tokens")
        assert (progress.chunks, progress.output_tokens) == (6, 6)
        assert progress.output_tokens_source == "usage"
        check_times(progress, ttft_ns=30_000_000, last_ns=80_000_000)


def check_times(progress: Progress, ttft_ns: int, last_ns: int) -> None:
    """A busy machine reads late, and never early; 1 ms is left for the timers' rounding."""
    assert progress.sent_ns is not None
    assert progress.first_token_ns is not None
    assert progress.last_token_ns is not None
    assert progress.done_ns is not None
    assert progress.gaps_ns is not None
    assert progress.first_token_ns - progress.sent_ns >= ttft_ns - 1_000_000
    assert progress.last_token_ns - progress.sent_ns >= last_ns - 1_000_000
    assert sum(progress.gaps_ns) == progress.last_token_ns - progress.first_token_ns
    assert progress.first_content_ns == progress.first_token_ns
    assert progress.done_ns >= progress.last_token_ns


async def test_an_unstreamed_reply_invents_no_token_times(sim: Any, started: Started) -> None:
    url = sim().url
    for kind in [*KINDS, "openai-embeddings"]:
        backend = await started(url, kind=kind, stream=False)
        await backend.validate()
        answer, progress = await ask(backend)
        assert answer.failure is None
        assert progress.done_ns is not None
        for name in ("first_token_ns", "first_content_ns", "last_token_ns", "chunks", "gaps_ns"):
            assert getattr(progress, name) is None, name
        assert (progress.input_tokens or 0) > 0
        if kind == "openai-embeddings":
            assert (answer.message, progress.text, progress.output_tokens) == (None, None, None)
        else:
            assert (progress.output_tokens, progress.output_tokens_source) == (6, "usage")
            assert answer.message is not None


async def test_without_usage_tokens_are_chunks_and_that_is_said(sim: Any, started: Started) -> None:
    backend = await started(sim().url, include_usage=False)
    await backend.validate()
    _, progress = await ask(backend)
    assert (progress.output_tokens, progress.output_tokens_source) == (6, "chunks")
    assert progress.input_tokens is None


async def test_the_real_reply_becomes_the_next_turn_s_history(sim: Any, started: Started) -> None:
    """L6: history must make the second prompt longer by both messages of the first turn."""
    url = sim().url
    for kind in KINDS:
        backend = await started(url, kind=kind)
        await backend.validate()
        first, before = await ask(backend)
        assert first.message is not None
        _, after = await ask(backend, HELLO, (*HELLO.as_messages(), first.message))
        assert (after.input_tokens or 0) >= (before.input_tokens or 0) + 6


# --- what is sent --------------------------------------------------------------------------------


async def body_of(scripted: Any, play: SimpleNamespace, started: Started, **options: Any) -> Any:
    server = await scripted([[play.whole(b"{}")]])
    call = options.pop("call", HELLO)
    history = options.pop("history", ())
    backend = await started(server.url, model="m", **options)
    await ask(backend, call, history)
    return json.loads(server.requests[0][1])


async def test_nothing_is_put_into_a_body_that_was_not_asked(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    """Trap 49: `ignore_eos` and other extras made strict providers answer 400."""
    assert await body_of(scripted, play, started, stream=False, call=Call(prompt="hi")) == {
        "model": "m", "messages": [{"role": "user", "content": "hi"}],
    }  # fmt: skip
    assert await body_of(scripted, play, started) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 6,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert await body_of(scripted, play, started, kind="openai-responses") == {
        "model": "m", "input": "hello there", "max_output_tokens": 6, "stream": True,
    }  # fmt: skip
    assert await body_of(scripted, play, started, kind="openai-embeddings") == {
        "model": "m", "input": "hello there",
    }  # fmt: skip
    assert await body_of(
        scripted, play, started, kind="openai-completions", include_usage=False
    ) == {"model": "m", "prompt": "hello there", "max_tokens": 6, "stream": True}


async def test_extra_fields_go_over_ours_and_the_call_s_over_those(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    call = Call(prompt="hi", output_tokens=4, body={"temperature": 0.5, "model": "other"})
    body = await body_of(
        scripted, play, started, call=call, stream=False,
        output_tokens_field="max_completion_tokens",
        extra_body={"ignore_eos": True, "temperature": 1},
    )  # fmt: skip
    assert body == {
        "model": "other",
        "messages": [{"role": "user", "content": "hi"}],
        "max_completion_tokens": 4,
        "ignore_eos": True,
        "temperature": 0.5,
    }


async def test_history_tool_calls_and_parts_are_passed_through(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    tool_calls = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    history = (
        Message("system", "be brief"),
        Message("assistant", "", {"tool_calls": tool_calls}),
    )
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}]
    call = Call(messages=(Message("tool", "42", {"tool_call_id": "a"}), Message("user", parts)))
    body = await body_of(scripted, play, started, call=call, history=history, stream=False)
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": "", "tool_calls": tool_calls},
        {"role": "tool", "content": "42", "tool_call_id": "a"},
        {"role": "user", "content": parts},
    ]


async def test_the_api_key_is_sent_and_shown_nowhere(
    scripted: Any, play: SimpleNamespace, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", "s3cret")
    refusal = play.whole(b'{"error":{"message":"Incorrect key: s3cret"}}', "401 Unauthorized")
    server = await scripted([[refusal], [refusal]])
    backend = await started(server.url, model="m", api_key_env="TEST_KEY")
    with pytest.raises(TargetError) as refused:
        await backend.validate()
    answer, _ = await ask(backend)
    assert b"\r\nAuthorization: Bearer s3cret\r\n" in server.requests[0][0]
    assert "refuses the API key" in str(refused.value)
    assert answer.failure is not None
    assert answer.failure.body == '{"error":{"message":"Incorrect key: ***"}}'
    assert "s3cret" not in f"{refused.value}{answer}{backend!r}"


# --- what goes wrong -----------------------------------------------------------------------------


async def test_an_error_status_keeps_its_body_and_retry_after(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    """Trap 48."""
    server = await scripted([[play.whole(b'{"error":"slow"}', "429 X", "Retry-After: 3\r\n")]])
    answer, progress = await ask(await started(server.url, model="m"))
    failure = answer.failure
    assert failure is not None
    assert (failure.category, failure.status, failure.retry_after_s) == ("http_status", 429, 3.0)
    assert (failure.message, failure.body) == ("HTTP 429 Too Many Requests", '{"error":"slow"}')
    assert progress.done_ns is not None


@pytest.mark.parametrize(
    "events",
    [
        [delta(content="a"), {"error": {"message": "out of memory"}}],
        [delta(content="a"), {"object": "error", "message": "out of memory"}, "data: [DONE]\n\n"],
        [delta(content="a"), 'event: error\ndata: {"message": "out of memory"}\n\n'],
        [{"error": "out of memory"}],
    ],
)
async def test_an_error_inside_a_stream_is_the_server_s(
    scripted: Any, play: SimpleNamespace, started: Started, events: list[Any]
) -> None:
    server = await scripted([[play.chunked(*sse(*events))]])
    answer, progress = await ask(await started(server.url, model="m"))
    assert answer.failure is not None
    assert (answer.failure.category, answer.failure.status) == ("server", 200)
    assert answer.failure.body == "out of memory"
    if len(events) > 1:
        assert (progress.text, progress.chunks) == ("a", 1)


@pytest.mark.parametrize(
    ("body", "category", "words"),
    [
        (b'{"error":{"message":"overloaded"}}', "server", "inside its reply"),
        (b"<html><body>Login</body></html>", "protocol", "HTML"),
        (b"", "protocol", "empty"),
        (b'{"hello":"world"}', "protocol", "not JSON of the OpenAI API"),
        (b"plain words", "protocol", "no event"),
        (b"data: {broken\n\n", "protocol", "an event of the stream"),
    ],
)
async def test_a_reply_of_status_200_that_is_none_is_a_failure(
    scripted: Any,
    play: SimpleNamespace,
    started: Started,
    body: bytes,
    category: str,
    words: str,
) -> None:
    server = await scripted([[play.whole(body)]])
    answer, _ = await ask(await started(server.url, model="m"))
    assert answer.failure is not None
    assert answer.failure.category == category
    assert words in answer.failure.message
    if category == "protocol":
        assert answer.failure.body == (body.decode() or None)


async def test_a_server_that_ignores_stream_is_read_without_token_times(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    reply = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}
    server = await scripted([[play.whole(json.dumps(reply).encode())]])
    answer, progress = await ask(await started(server.url, model="m"))
    assert answer.failure is None
    assert progress.text == "hi"
    assert progress.first_token_ns is None
    assert progress.output_tokens is None


async def test_a_stream_that_breaks_off_keeps_its_part(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    raw = play.chunked(*sse(delta(role="assistant"), delta(content="so "), delta(content="far")))
    server = await scripted([[raw.removesuffix(b"0\r\n\r\n"), play.close]])
    answer, progress = await ask(await started(server.url, model="m"))
    assert answer.failure is not None
    assert answer.failure.category == "disconnected"
    assert (progress.text, progress.chunks) == ("so far", 2)
    assert (progress.output_tokens, progress.output_tokens_source) == (2, "chunks")
    assert progress.first_token_ns is not None


async def test_cancelling_keeps_the_part_that_came(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    """Trap 35: 399 of 399 partial responses were lost."""
    raw = play.chunked(*sse(delta(content="so "), delta(content="far"))).removesuffix(b"0\r\n\r\n")
    sent = asyncio.Event()
    sent.set()
    server = await scripted([[raw, sent, play.silence]])
    limits = TimeoutSpec(first_token_s=10, total_s=20)
    backend = await started(server.url, model="m", timeouts=limits)
    progress = Progress()
    task = asyncio.ensure_future(backend.resolve(HELLO, (), progress))
    await server.wait_requests(1)
    # The reply is on its way through the loopback; nothing tells when it was read but time, and
    # turns of the loop, which a busy machine does not take away.
    for _ in range(40):
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (progress.text, progress.chunks) == ("so far", 2)
    assert progress.sent_ns is not None
    assert progress.first_token_ns is not None
    assert progress.done_ns is None


async def test_the_first_token_deadline_does_not_take_a_role_for_a_token(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    raw = play.chunked(*sse(delta(role="assistant", content=""))).removesuffix(b"0\r\n\r\n")
    server = await scripted([[raw, play.silence]])
    limits = TimeoutSpec(first_token_s=0.2, total_s=20)
    answer, progress = await ask(await started(server.url, model="m", timeouts=limits))
    assert answer.failure is not None
    assert (answer.failure.category, answer.failure.message) == (
        "timeout", "no first token within 0.2 s",
    )  # fmt: skip
    assert progress.first_token_ns is None


# --- validation: one clear sentence each (issue: must show 7) ------------------------------------


async def refusal_of(backend: Backend) -> str:
    with pytest.raises(TargetError) as refused:
        await asyncio.wait_for(backend.validate(), 15)
    text = str(refused.value)
    assert "\n" not in text
    return text


async def test_a_port_where_nothing_listens(started: Started) -> None:
    text = await refusal_of(await started("http://127.0.0.1:1"))
    assert text == (
        "cannot measure http://127.0.0.1:1: connection refused: nothing listens at "
        "http://127.0.0.1:1"
    )


async def test_a_server_that_wants_a_key(sim: Any, started: Started) -> None:
    text = await refusal_of(await started(sim(api_key="right").url))
    assert "HTTP 401 Unauthorized" in text
    assert "wants an API key" in text
    assert "--api-key-env" in text


async def test_a_server_that_answers_with_a_web_page(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    page = play.whole(b"<!doctype html><title>Hi</title>", headers="Content-Type: text/html\r\n")
    server = await scripted([[page]])
    text = await refusal_of(await started(server.url, model="m"))
    assert "HTML page" in text
    assert "not an OpenAI-compatible API" in text


async def test_a_server_that_answers_with_other_json(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    server = await scripted([[play.whole(b'["nothing"]')]])
    assert "is it an OpenAI-compatible API?" in await refusal_of(await started(server.url))


async def test_a_server_that_never_answers(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    server = await scripted([[play.silence]])
    backend = await started(server.url, timeouts=TimeoutSpec(total_s=0.2))
    assert "no whole reply within 0.2 s (total)" in await refusal_of(backend)


async def test_a_misspelt_model_names_those_there_are(sim: Any, started: Started) -> None:
    server = sim(model="qwen3-8b")
    text = await refusal_of(await started(server.url, model="qwen3-8"))
    assert "has no model 'qwen3-8'; it has: qwen3-8b" in text
    assert "did you mean 'qwen3-8b'?" in text


async def test_a_server_without_a_model_list_is_taken_when_a_model_is_named(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    missing = play.whole(b'{"detail":"Not Found"}', "404 Not Found")
    server = await scripted([[missing], [missing]])
    info = await (await started(server.url, model="m")).validate()
    assert (info.model, info.models) == ("m", ())
    said = await refusal_of(await started(f"{server.url}/v1/chat/completions"))
    assert "/v1/chat/completions/v1/models lists no models; name" in said


async def test_the_first_listed_model_is_taken_and_asked_for(
    scripted: Any, play: SimpleNamespace, started: Started
) -> None:
    models = {"data": [{"id": "one", "owned_by": "vllm", "max_model_len": 4096}, {"id": "two"}]}
    listed = play.whole(json.dumps(models).encode(), headers="Server: uvicorn\r\n")
    server = await scripted(
        [
            [
                listed,
            ],
            [play.whole(b"{}")],
        ]
    )
    backend = await started(server.url)
    info = await backend.validate()
    assert (info.model, info.models, info.server) == ("one", ("one", "two"), "uvicorn")
    assert info.details == {"id": "one", "owned_by": "vllm", "max_model_len": 4096}
    await ask(backend)
    assert json.loads(server.requests[1][1])["model"] == "one"

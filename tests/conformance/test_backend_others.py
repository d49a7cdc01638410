"""The generic HTTP, Python and null backends, and the counting of tokens (L9, L10)."""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.backends.backend import Answer, Backend, Call, Progress
from headway.backends.registry import create_backend
from headway.backends.spec import (
    BackendSpec,
    HttpBackendSpec,
    NullBackendSpec,
    OpenAIBackendSpec,
    PythonBackendSpec,
    TargetSpec,
    TimeoutSpec,
)
from headway.backends.tokens import open_token_counter
from headway.core.clock import monotonic_ns
from headway.core.errors import ConfigError, TargetError

CALL = Call(prompt='say "hi"', output_tokens=3, variables={"user": "ada"})


async def ask(
    spec: BackendSpec, call: Call = CALL, url: str = "http://unused", **target: Any
) -> tuple[Answer, Progress]:
    backend: Backend = create_backend(spec, TargetSpec(url=url, **target))
    await backend.startup()
    progress = Progress()
    try:
        return await backend.resolve(call, (), progress), progress
    finally:
        await backend.shutdown()


# --- any HTTP request ----------------------------------------------------------------------------


async def test_a_template_is_filled_and_sent_with_method_path_and_headers(
    scripted: Any, play: SimpleNamespace
) -> None:
    server = await scripted([[play.whole(b"fine")]])
    spec = HttpBackendSpec(
        method="put",
        path="generate?v=2",
        headers={"X-Own": "yes"},
        body='{"inputs": "{prompt}", "n": {output_tokens}, "user": "{user}"}',
    )
    answer, progress = await ask(spec, url=server.url + "/api")
    head, body = server.requests[0]
    assert head.startswith(b"PUT /api/generate?v=2 HTTP/1.1\r\n")
    assert b"\r\nX-Own: yes\r\n" in head
    assert b"\r\nContent-Type: application/json\r\n" in head
    assert json.loads(body) == {"inputs": 'say "hi"', "n": 3, "user": "ada"}
    assert answer.failure is None
    assert progress.text == "fine"
    assert progress.first_token_ns is None
    assert progress.done_ns is not None


async def test_a_get_has_neither_body_nor_content_type(
    scripted: Any, play: SimpleNamespace
) -> None:
    server = await scripted([[play.whole(b"fine")]])
    await ask(HttpBackendSpec(method="GET", path="/ping"), url=server.url)
    assert server.requests[0][0].startswith(b"GET /ping HTTP/1.1\r\n")
    assert b"content-" not in server.requests[0][0].lower()


@pytest.mark.parametrize(
    ("stream", "body"),
    [
        ("sse", b"data: a\n\n: x\n\ndata: b\n\ndata: c\n\ndata: [DONE]\n\n"),
        ("lines", b'{"a":1}\n\n{"b":2}\r\n{"c":3}'),
    ],
)
async def test_events_and_lines_are_chunks(
    scripted: Any, play: SimpleNamespace, stream: Any, body: bytes
) -> None:
    go_on = asyncio.Event()
    raw = play.chunked(body[:9], body[9:])
    cut = raw.index(b"\r\n", raw.index(body[:9])) + 2
    server = await scripted([[raw[:cut], go_on, raw[cut:]]])
    asking = asyncio.ensure_future(ask(HttpBackendSpec(path="/s", stream=stream), url=server.url))
    await server.wait_requests(1, timeout_s=20)
    for _ in range(20):  # The first part is read in the first of these turns of the loop.
        await asyncio.sleep(0.005)
    go_on.set()
    answer, progress = await asking
    assert answer.failure is None
    assert progress.chunks == 3
    assert (progress.output_tokens, progress.output_tokens_source) == (3, "chunks")
    assert progress.gaps_ns is not None
    assert len(progress.gaps_ns) == 1
    assert progress.gaps_ns[0] > 20_000_000


async def test_a_row_without_the_named_field_fails_with_its_name() -> None:
    answer, _ = await ask(HttpBackendSpec(body="{nothing}"))
    assert answer.failure is not None
    assert answer.failure.category == "backend"
    assert "{nothing} has no value" in answer.failure.message


async def test_any_answer_makes_an_http_target_valid_and_silence_does_not(
    scripted: Any, play: SimpleNamespace
) -> None:
    server = await scripted([[play.whole(b"no", "405 Method Not Allowed")]], [[play.silence]])
    backend = create_backend(
        HttpBackendSpec(path="/change/everything", body="x"),
        TargetSpec(url=server.url, timeouts=TimeoutSpec(total_s=1.0)),
    )
    await backend.startup()
    await backend.validate()
    assert server.requests[0][0].startswith(b"GET / HTTP/1.1")
    await backend.shutdown()
    await backend.startup()
    with pytest.raises(TargetError, match=r"no whole reply within 1 s"):
        await backend.validate()
    await backend.shutdown()


# --- Python callables ----------------------------------------------------------------------------

MODULE = """
import asyncio, threading, time

def blocking(row):
    return {"text": f"{row['user']} in {threading.current_thread().name}", "output_tokens": 4}

async def quick(row):
    return f"hello {row['user']}"

async def streaming(row):
    yield "one "
    await asyncio.sleep(0.03)
    yield ""
    yield "two"

async def failing(row):
    raise LookupError("no such user")

async def silent(row):
    await asyncio.sleep(60)

async def own_timeout(row):
    raise TimeoutError("mine")

not_callable = 5

class Holder:
    @staticmethod
    def method(text):
        time.sleep(0.03)
        return text.upper()
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = "user_target_module"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


async def test_a_plain_function_runs_in_a_thread_and_may_report_tokens(module: str) -> None:
    answer, progress = await ask(PythonBackendSpec(function=f"{module}:blocking"))
    assert answer.failure is None
    assert progress.text is not None
    assert progress.text.startswith("ada in blocking-call")
    assert (progress.output_tokens, progress.output_tokens_source) == (4, "usage")
    assert progress.sent_ns is not None
    assert progress.done_ns is not None
    assert progress.pool_wait_ns is not None


async def test_calls_beyond_the_threads_wait_and_that_is_no_service_time(module: str) -> None:
    """Trap 44."""
    spec = PythonBackendSpec(function=f"{module}:Holder.method", threads=1)
    backend = create_backend(spec, TargetSpec(url="http://unused"))
    await backend.startup()
    progresses = [Progress() for _ in range(3)]
    calls = [asyncio.ensure_future(backend.resolve(Call(prompt="x"), (), p)) for p in progresses]
    await asyncio.sleep(0)
    all_asked_ns = monotonic_ns()
    await asyncio.gather(*calls)
    await backend.shutdown()
    last = max(progresses, key=lambda p: p.sent_ns or 0)
    assert (last.pool_wait_ns or 0) >= (last.sent_ns or 0) - all_asked_ns
    by_start = sorted((p.sent_ns or 0, p.done_ns or 0) for p in progresses)
    assert all(done <= sent for (_, done), (sent, _) in pairwise(by_start))


async def test_a_coroutine_function_is_awaited(module: str) -> None:
    answer, progress = await ask(PythonBackendSpec(function=f"{module}:quick"))
    assert answer.message is not None
    assert answer.message.content == progress.text == "hello ada"


async def test_an_async_generator_s_items_are_chunks(module: str) -> None:
    _, progress = await ask(PythonBackendSpec(function=f"{module}:streaming"))
    assert (progress.text, progress.chunks) == ("one two", 2)
    assert progress.gaps_ns is not None
    assert progress.gaps_ns[0] >= 29_000_000


async def test_what_a_callable_raises_comes_out(module: str) -> None:
    for name, error in (("failing", LookupError), ("own_timeout", TimeoutError)):
        with pytest.raises(error):
            await ask(PythonBackendSpec(function=f"{module}:{name}"))


async def test_the_total_deadline_holds_for_callables(module: str) -> None:
    answer, progress = await ask(
        PythonBackendSpec(function=f"{module}:silent"), timeouts=TimeoutSpec(total_s=0.05)
    )
    assert answer.failure is not None
    assert answer.failure.category == "timeout"
    assert progress.done_ns is not None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_module_at_all:x", "cannot import no_such_module_at_all"),
        ("{module}:missing", "has no callable missing"),
        ("{module}:not_callable", "has no callable not_callable"),
    ],
)
async def test_a_callable_that_is_not_there_is_named(module: str, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        await ask(PythonBackendSpec(function=name.format(module=module)))


# --- null ----------------------------------------------------------------------------------------


async def test_the_null_backend_takes_its_latency_in_even_chunks() -> None:
    _, progress = await ask(NullBackendSpec(latency_s=0.06, chunks=3))
    assert progress.chunks == 3
    assert progress.sent_ns is not None
    assert progress.done_ns is not None
    assert progress.gaps_ns is not None
    assert progress.done_ns - progress.sent_ns >= 57_000_000
    assert len(progress.gaps_ns) == 2


# --- counting tokens -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["openai-chat", "openai-completions"])
async def test_counts_of_the_endpoint_equal_the_usage_of_a_real_request(
    sim: Any, kind: Any
) -> None:
    target, spec = TargetSpec(url=sim().url), OpenAIBackendSpec(kind=kind, stream=False)
    counter = await open_token_counter(target, spec)
    assert counter is not None
    assert counter.source == "tokenize"
    call = Call(prompt="one two three four", output_tokens=1)
    counted = await counter.count(call)
    await counter.close()
    _, progress = await ask(spec, call, target.url, model="headway-sim")
    assert counted == progress.input_tokens


def models(play: SimpleNamespace) -> bytes:
    reply: bytes = play.whole(b'{"data":[{"id":"m"}]}')
    return reply


def used(play: SimpleNamespace, prompt_tokens: int) -> bytes:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 1}
    reply = {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}
    raw: bytes = play.whole(json.dumps(reply | {"usage": usage}).encode())
    return raw


async def serve_counts(play: SimpleNamespace, tokenize: bytes, usage: bytes) -> ScriptedByPath:
    return await ScriptedByPath.start(
        {"/v1/models": models(play), "/tokenize": tokenize, "/v1/chat/completions": usage}
    )


class ScriptedByPath:
    """Answers each path with its own bytes."""

    def __init__(self, replies: dict[str, bytes]) -> None:
        self.replies = replies
        self.bodies: list[tuple[str, Any]] = []
        self.url = ""

    @classmethod
    async def start(cls, replies: dict[str, bytes]) -> ScriptedByPath:
        self = cls(replies)
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                path = head.split(b" ")[1].decode()
                length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
                body = await reader.readexactly(int(length)) if length else b""
                self.bodies.append((path, json.loads(body) if body else None))
                writer.write(self.replies[path])
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


async def test_an_endpoint_that_leaves_out_the_chat_template_is_not_trusted(
    play: SimpleNamespace,
) -> None:
    server = await serve_counts(play, play.whole(b'{"count":9}'), used(play, 14))
    counter = await open_token_counter(TargetSpec(url=server.url), OpenAIBackendSpec())
    assert counter is not None
    assert counter.source == "usage"
    assert await counter.count(Call(prompt="x", output_tokens=500)) == 14
    await counter.close()
    server.server.close()
    asked = [body for path, body in server.bodies if path == "/v1/chat/completions"]
    assert {body["max_tokens"] for body in asked} == {1}
    assert not any(body.get("stream") for body in asked)


async def test_a_target_without_either_way_has_no_counter(
    play: SimpleNamespace,
) -> None:
    missing = play.whole(b"{}", "404 Not Found")
    server = await serve_counts(play, missing, missing)
    assert await open_token_counter(TargetSpec(url=server.url), OpenAIBackendSpec()) is None
    server.server.close()


async def test_backends_without_tokens_have_no_counter() -> None:
    assert await open_token_counter(TargetSpec(url="http://unused"), NullBackendSpec()) is None

"""The simulated server's times are what it was told; its truth log is what tests rely on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headway.core.clock import NS_PER_MS, monotonic_ns


async def ask(port: int, words: str = "hello", **fields: Any) -> tuple[int, int, str]:
    """One streamed request; returns when it was sent, when it had ended, and the reply."""
    body = json.dumps(
        {"messages": [{"role": "user", "content": words}], "stream": True, "max_tokens": 8}
        | {"stream_options": {"include_usage": True}}
        | fields
    ).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    sent_ns = monotonic_ns()
    writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    reply = await asyncio.wait_for(reader.read(), 30)
    ended_ns = monotonic_ns()
    writer.close()
    await writer.wait_closed()
    return sent_ns, ended_ns, reply.decode()


def usage_of(reply: str) -> Any:
    event = next(line for line in reply.splitlines() if '"choices":[],' in line)
    return json.loads(event.removeprefix("data: "))["usage"]


@pytest.mark.serial
async def test_exact_tokens_leave_at_absolute_times(sim: Any) -> None:
    """Trap 29: the sixtieth token is no later than the first; gap after gap would add up.

    The best of many requests is looked at, because a busy machine can delay any of them.
    """
    server = sim(ttft=0.02, itl=0.002)
    for _ in range(10):
        await asyncio.gather(*[ask(server.port, max_tokens=60) for _ in range(4)])
    lines = server.truth(at_least=40)
    late = [line["first_token_ns"] - line["arrival_ns"] - 20 * NS_PER_MS for line in lines]
    late_end = [line["end_ns"] - line["arrival_ns"] - (20 + 59 * 2) * NS_PER_MS for line in lines]
    assert 0 <= min(late) < NS_PER_MS
    assert 0 <= min(late_end) < NS_PER_MS


async def test_the_truth_log_lies_inside_what_a_client_sees(sim: Any) -> None:
    server = sim(ttft=0.01, itl=0.002)
    seen = [await ask(server.port) for _ in range(5)]
    for (sent_ns, ended_ns, _), line in zip(seen, server.truth(at_least=5), strict=True):
        times = [sent_ns, line["arrival_ns"], line["first_token_ns"], line["end_ns"], ended_ns]
        assert times == sorted(times)
        assert line["first_token_ns"] - line["arrival_ns"] >= 10 * NS_PER_MS
        assert line["output_tokens"] == 8


@pytest.mark.serial
async def test_drawn_times_differ_between_requests_and_not_between_runs(sim: Any) -> None:
    spans = []
    for _ in range(2):
        server = sim(ttft="0.03±0.01", seed=5)
        for _ in range(6):
            await ask(server.port)
        lines = server.truth(at_least=6)
        spans.append([(line["first_token_ns"] - line["arrival_ns"]) / 1e6 for line in lines])
    assert len({round(span) for span in spans[0]}) > 1
    # Draws are 20 ms wide; what the machine adds is positive and mostly below one.
    assert sum(abs(a - b) < 5 for a, b in zip(*spans, strict=True)) >= 4


@pytest.mark.serial
async def test_the_modelled_engine_has_a_knee(sim: Any) -> None:
    """More streams raise throughput, until the batch is full; then only the wait grows."""
    server = sim(mode="modelled", max_batch=8, step_base=0.01, step_per_sequence=0.001)

    async def rate(streams: int) -> float:
        begun_ns = monotonic_ns()
        await asyncio.gather(*[ask(server.port, max_tokens=24) for _ in range(streams)])
        return streams / (monotonic_ns() - begun_ns)

    one, full, over = await rate(1), await rate(8), await rate(24)
    assert full > 2.5 * one
    assert over < 1.6 * full
    lines = server.truth(at_least=33)
    waits = [line["first_token_ns"] - line["arrival_ns"] for line in lines[9:]]
    assert max(waits) > 3 * min(waits)


async def test_a_repeated_prompt_is_reported_as_cached(sim: Any) -> None:
    """Trap 50: whether the prefix cache was warm shows in usage."""
    server = sim(mode="modelled")
    words = " ".join(f"word{k}" for k in range(100))
    cached = []
    for _ in range(2):
        _, _, reply = await ask(server.port, words)
        cached.append(usage_of(reply)["prompt_tokens_details"]["cached_tokens"])
    assert cached == [0, 96]


async def test_a_request_that_can_never_fit_the_cache_is_refused(sim: Any) -> None:
    server = sim(mode="modelled", kv_capacity_tokens=64)
    _, _, reply = await ask(server.port, max_tokens=80)
    assert reply.startswith("HTTP/1.1 400")
    assert "key-value cache holds 64 tokens" in reply


async def test_a_small_cache_preempts_and_still_serves_everybody(sim: Any) -> None:
    server = sim(mode="modelled", kv_capacity_tokens=160, step_base=0.001)
    prompts = [" ".join(f"p{one}x{k}" for k in range(20)) for one in range(6)]
    replies = await asyncio.gather(*[ask(server.port, prompt, max_tokens=60) for prompt in prompts])
    assert [usage_of(reply)["completion_tokens"] for _, _, reply in replies] == [60] * 6
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    metrics = dict(
        line.rsplit(" ", 1) for line in (await reader.read()).decode().splitlines() if " " in line
    )
    writer.close()
    await writer.wait_closed()
    assert int(metrics["headway_sim_preemptions_total"]) > 0
    assert metrics["headway_sim_kv_cache_usage_ratio"] == "0.0"

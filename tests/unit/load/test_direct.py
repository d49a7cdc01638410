"""Requests that no coroutine carries end exactly once too, whatever the server and stops do."""

from __future__ import annotations

import asyncio
import json

import pytest

from headway.backends.backend import Message
from headway.backends.registry import create_backend
from headway.backends.spec import HttpBackendSpec, OpenAIBackendSpec, TargetSpec
from headway.core.clock import SystemClock, monotonic_ns
from headway.load.lifecycle import StageFrame
from headway.load.messages import BeginStage, Drain, Grants, StageDone
from headway.load.stage_worker import StageServices, StageWorker

DEADLINE_S = 30.0


def reply(text, head="200 OK"):
    body = json.dumps(
        {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    ).encode()
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (head.encode(), len(body), body)


class Target:
    """An HTTP server that does with each prompt what its script says; otherwise it echoes."""

    def __init__(self, script):
        self.script = script
        self.bodies = []
        self.url = ""
        self.connections = 0
        self.went_quiet = asyncio.Event()

    async def serve(self):
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies.append(body)
                prompt = body["messages"][-1]["content"] if "messages" in body else body["q"]
                if not await self._act(self.script.pop(prompt, "echo"), prompt, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def _act(self, action, prompt, writer):
        if action == "close":  # As a server that lets an idle connection go, just now.
            return False
        if action == "close, then half":
            self.script[prompt] = "half"
            return False
        if action == "half":
            writer.write(reply(prompt)[:-20])
            self.went_quiet.set()
            return True
        if action == "reset midway":
            writer.write(reply(prompt)[:-20])
            return False
        writer.write(reply(prompt, "503 Unavailable") if action == "fail" else reply(prompt))
        return True


class Stage:
    def __init__(self, backend, inputs, outbox, slots):
        self.broken = []
        self.done = asyncio.Event()
        self.outbox = outbox
        outbox.on_message = lambda m: self.done.set() if isinstance(m, StageDone) else None
        start_ns = monotonic_ns()
        begin = BeginStage(stage=0, start_ns=start_ns, slots=slots, closed_loop=True)
        services = StageServices(backend, outbox, SystemClock(), self.broken.append)
        frame = StageFrame(0, 0, start_ns, False)
        self.worker = StageWorker(begin, inputs, frame, services, False)

    async def finish(self, drain=None):
        self.worker.drain(drain or Drain(0))
        await asyncio.wait_for(self.done.wait(), DEADLINE_S)
        await self.worker.close()
        assert self.broken == []
        return {(r.index, r.turn): r for r in self.outbox.records}


@pytest.fixture
async def against(kept_outbox, listed_inputs):
    """Carries out `turns` conversations against a scripted target."""
    opened = []

    async def begin(turns, script=None, *, slots=1, spec=None, inputs=None, **fields):
        target = Target(script or {})
        opened.append(await target.serve())
        given = spec or OpenAIBackendSpec(stream=False)
        backend = create_backend(given, TargetSpec(url=target.url, model="m", **fields))
        await backend.startup()
        opened.append(backend)
        stage = Stage(backend, inputs or listed_inputs(turns), kept_outbox(), slots)
        stage.worker.take_grants(Grants(0, 0, len(turns)))
        return target, stage

    yield begin
    for one in opened:
        if hasattr(one, "shutdown"):
            await one.shutdown()
        else:
            one.close()


def statuses(records):
    return {key: record.status for key, record in sorted(records.items())}


async def test_one_connection_a_slot_carries_everything(against):
    target, stage = await against([1] * 50, slots=3)
    records = await stage.finish()
    assert statuses(records) == {(i, 0): "completed" for i in range(50)}
    assert target.connections == 3
    assert sum(r.connection_reused is True for r in records.values()) == 47
    assert all(r.sent_ns < r.first_byte_ns <= r.done_ns for r in records.values())


async def test_turns_carry_the_answers_before_them(against):
    target, stage = await against([3, 2], slots=2)
    records = await stage.finish()
    assert len(records) == 5
    last = next(b for b in target.bodies if b["messages"][-1]["content"] == "0/2")
    roles = [(m["role"], m["content"]) for m in last["messages"]]
    assert roles == [(r, f"0/{t}") for t in (0, 1) for r in ("user", "assistant")] + [
        ("user", "0/2")
    ]


async def test_a_connection_closed_while_idle_costs_one_sending_and_no_error(against):
    _, stage = await against([1] * 6, {"3/0": "close"})
    records = await stage.finish()
    assert statuses(records) == {(i, 0): "completed" for i in range(6)}
    assert [i for (i, _), r in records.items() if r.resent] == [3]


async def test_a_connection_lost_within_a_reply_is_an_error_and_not_sent_again(against):
    target, stage = await against([1] * 6, {"3/0": "reset midway"})
    records = await stage.finish()
    assert records[3, 0].status == "errored"
    assert records[3, 0].failure.category == "disconnected"
    assert not records[3, 0].resent
    assert len(target.bodies) == 6


async def test_a_failed_turn_frees_its_slot_and_cancels_what_would_follow(against):
    """One slot: were it not freed, the next conversation would never begin."""
    _, stage = await against([1, 3, 1], {"1/1": "fail"})
    records = await stage.finish()
    assert statuses(records) == {
        (0, 0): "completed",
        (1, 0): "completed",
        (1, 1): "errored",
        (1, 2): "cancelled",
        (2, 0): "completed",
    }


async def test_cancelling_keeps_what_had_arrived(against):
    """Trap 35: partial data of a request in flight, and one terminal record."""
    target, stage = await against([1] * 3, {"2/0": "half"})
    await asyncio.wait_for(target.went_quiet.wait(), DEADLINE_S)
    deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
    while not any(r.exchange and r.exchange.reads for r in stage.worker._slots.in_flight):
        assert asyncio.get_running_loop().time() < deadline_s
        await asyncio.sleep(0.001)
    now_ns = monotonic_ns()
    records = await stage.finish(Drain(0, now_ns, now_ns))
    assert records[2, 0].status == "cancelled"
    assert records[2, 0].response_bytes > 0
    assert len(stage.outbox.records) == 3


async def test_cancelling_what_is_being_sent_again_keeps_what_had_arrived(against):
    """Trap 35: a task carries it by then, and no longer the connection's own call."""
    target, stage = await against([1] * 3, {"2/0": "close, then half"})
    await asyncio.wait_for(target.went_quiet.wait(), DEADLINE_S)
    deadline_s = asyncio.get_running_loop().time() + DEADLINE_S
    while not any(r.exchange and r.exchange.reads for r in stage.worker._slots.in_flight):
        assert asyncio.get_running_loop().time() < deadline_s
        await asyncio.sleep(0.001)
    now_ns = monotonic_ns()
    records = await stage.finish(Drain(0, now_ns, now_ns))
    assert records[2, 0].status == "cancelled"
    assert records[2, 0].resent
    assert records[2, 0].response_bytes > 0
    assert len(stage.outbox.records) == 3


async def test_a_total_deadline_ends_a_request_that_no_task_waits_for(against):
    _, stage = await against([1] * 3, {"1/0": "half"}, timeouts={"total_s": 1.5})
    records = await stage.finish()
    assert records[1, 0].failure.category == "timeout"
    assert records[2, 0].status == "completed"


async def test_a_template_without_its_value_fails_its_request_with_a_sentence(against):
    spec = HttpBackendSpec(body='{"q": "{prompt}", "x": {missing}}')
    _, stage = await against([1, 1], spec=spec)
    records = await stage.finish()
    assert {r.status for r in records.values()} == {"errored"}
    assert "{missing}" in records[1, 0].failure.message


async def test_inputs_that_raise_fail_their_own_request_and_send_nothing_for_it(
    against, listed_inputs
):
    class Broken(listed_inputs):
        def conversation(self, index):
            if index == 1:
                raise ValueError("row 1 is broken")
            return super().conversation(index)

    target, stage = await against([1] * 3, inputs=Broken())
    records = await stage.finish()
    assert statuses(records) == {(0, 0): "completed", (1, 0): "errored", (2, 0): "completed"}
    assert records[1, 0].failure.message == "the inputs raised ValueError: row 1 is broken"
    assert records[1, 0].sent_ns is None
    assert len(target.bodies) == 2


async def test_any_http_request_goes_the_same_way(against):
    target, stage = await against([1] * 5, spec=HttpBackendSpec(body='{"q": "{prompt}"}'))
    records = await stage.finish()
    assert statuses(records) == {(i, 0): "completed" for i in range(5)}
    assert target.connections == 1


async def test_what_a_backend_raises_while_reading_is_a_record(against, monkeypatch):
    from headway.backends.openai import OpenAIBackend

    def broken(self, exchange, progress):
        raise RuntimeError("a bug while reading")

    monkeypatch.setattr(OpenAIBackend, "read", broken)
    _, stage = await against([1] * 3)
    records = await stage.finish()
    assert {r.failure.category for r in records.values()} == {"backend"}
    assert "a bug while reading" in records[2, 0].failure.body


async def test_bodies_of_bare_prompts_are_those_of_the_long_way():
    backend = create_backend(
        OpenAIBackendSpec(extra_body={"ignore_eos": True}),
        TargetSpec(url="http://127.0.0.1:1", model='a "model"'),
    )
    from headway.backends.backend import Call

    for prompt in ("plain", 'quo"te \\ and \n żółć', ""):
        for tokens in (None, 1, 700):
            call = Call(prompt=prompt, output_tokens=tokens)
            assert json.loads(backend.body(call, ())) == json.loads(backend._render(call))
    history = (Message("user", "a"), Message("assistant", "b"))
    assert len(json.loads(backend.body(Call(prompt="c"), history))["messages"]) == 3
    overridden = json.loads(backend.body(Call(prompt="c", body={"temperature": 0}), ()))
    assert overridden["temperature"] == 0

"""Every fault on demand does what it says, seen from a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from headway.core.clock import monotonic_ns

TOKENS = 6
BODY = {
    "model": "headway-sim",
    "messages": [{"role": "user", "content": "Hello there"}],
    "max_tokens": TOKENS,
    "stream": True,
    "stream_options": {"include_usage": True},
}
Ask = Callable[..., tuple[int, dict[str, str], str]]


class Client:
    """One connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def ask(self, fault: str = "", **changes: Any) -> http.client.HTTPResponse:
        headers = {"x-sim-fault": fault} if fault else {}
        body = json.dumps(BODY | changes)
        self.connection.request("POST", "/v1/chat/completions", body, headers)
        return self.connection.getresponse()

    def text(self, fault: str = "", **changes: Any) -> str:
        return self.ask(fault, **changes).read().decode()


@pytest.fixture
def client(server: Any) -> Iterator[Client]:
    client = Client(server.port)
    with closing(client.connection):
        yield client


@pytest.fixture(scope="module")
def server(module_sim: Any) -> Any:
    return module_sim(ttft=0.002, itl=0.002)


def events_of(text: str) -> list[Any]:
    return [json.loads(event.removeprefix("data: ")) for event in text.split("\n\n")[:-1] if
            event != "data: [DONE]"]  # fmt: skip


def contents_of(text: str) -> list[str]:
    deltas = [event["choices"][0]["delta"] for event in events_of(text) if event.get("choices")]
    return [delta["content"] for delta in deltas if delta.get("content")]


def test_a_sound_stream_for_comparison(client: Client) -> None:
    text = client.text()
    assert len(contents_of(text)) == TOKENS
    assert events_of(text)[-1]["usage"]["completion_tokens"] == TOKENS
    assert text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_error_has_the_status_and_a_json_body(client: Client, status: int) -> None:
    response = client.ask(f"error:status={status}")
    assert response.status == status
    assert set(json.loads(response.read())["error"]) == {"message", "type", "param", "code"}


def test_rate_limit_says_when_to_come_back(client: Client) -> None:
    response = client.ask("rate-limit:seconds=2.5")
    response.read()
    assert (response.status, response.headers["retry-after"]) == (429, "2.5")


def test_html_looks_like_success(client: Client) -> None:
    response = client.ask("html")
    assert response.status == 200
    assert response.headers["content-type"].startswith("text/html")
    assert b"<html>" in response.read()


def test_stall_before_the_head(client: Client) -> None:
    begun_ns = monotonic_ns()
    response = client.ask("stall:seconds=0.3")
    assert monotonic_ns() - begun_ns >= 300_000_000
    assert len(contents_of(response.read().decode())) == TOKENS


def test_stall_in_the_middle_of_a_stream(client: Client) -> None:
    response = client.ask("stall:at=3,seconds=1.5")
    before = b"".join(response.readline() for _ in range(2 * 4))
    assert len(contents_of(before.decode())) == 3
    begun_ns = monotonic_ns()
    after = response.read().decode()
    # Nearly all of the 1.5 s, but for what a busy machine took to come back from the first part.
    assert monotonic_ns() - begun_ns >= 200_000_000
    assert len(contents_of(after)) == TOKENS - 3


def test_stall_for_ever_ends_with_the_client(client: Client, server: Any) -> None:
    client.connection.timeout = 0.2
    with pytest.raises(TimeoutError):
        client.ask("stall", stream=False)
    client.connection.close()
    assert _truth_of(server, "client_left")


def test_reset_before_any_byte(client: Client) -> None:
    with pytest.raises(ConnectionResetError):
        client.ask("reset")


@pytest.mark.parametrize("ttft", ["instant", "paced"])
def test_reset_after_some_tokens(client: Client, module_sim: Any, ttft: str) -> None:
    if ttft == "instant":
        client = Client(module_sim().port)
    response = client.ask("reset:at=2")
    seen = b"".join(response.readline() for _ in range(2 * 3))
    assert len(contents_of(seen.decode())) == 2
    with pytest.raises(ConnectionResetError):
        response.read()
    client.connection.close()


def test_close_in_the_middle_of_a_stream(client: Client) -> None:
    with pytest.raises(http.client.IncompleteRead) as cut:
        client.text("close:at=2")
    assert len(contents_of(cut.value.partial.decode())) == 2


def test_close_without_an_answer(client: Client) -> None:
    with pytest.raises(http.client.RemoteDisconnected):
        client.text("close", stream=False)


def test_error_event_ends_the_stream(client: Client) -> None:
    events = events_of(client.text("error-event:at=2"))
    assert "error" in events[-1]
    assert len(contents_of(client.text("error-event:at=2"))) == 2


def test_malformed_event_stands_between_sound_ones(client: Client) -> None:
    events = client.text("malformed:at=2").split("\n\n")
    with pytest.raises(json.JSONDecodeError):
        json.loads(events[3].removeprefix("data: "))
    assert len(contents_of("\n\n".join(events[:3] + events[4:]))) == TOKENS


def test_malformed_cuts_a_whole_reply_to_half_of_its_json(client: Client) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(client.text("malformed", stream=False))


def test_close_idle_comes_after_a_whole_reply_and_unannounced(client: Client) -> None:
    response = client.ask("close-idle:seconds=0.05")
    assert response.headers["connection"] is None
    assert response.read().endswith(b"data: [DONE]\n\n")
    assert client.connection.sock.recv(1) == b""


def test_chunk_puts_several_tokens_into_one_event(client: Client) -> None:
    texts = contents_of(client.text("chunk:tokens=4"))
    assert [len(text.split()) for text in texts] == [4, 2]


def test_role_first_comes_ahead_of_the_first_token(module_sim: Any) -> None:
    """Trap 45: an event that only tells the role is no first token."""
    client = Client(module_sim(ttft=1.5).port)
    with closing(client.connection):
        response = client.ask("role-first")
        assert b'"role":"assistant"' in response.readline()
        begun_ns = monotonic_ns()
        assert len(contents_of(response.read().decode()[1:])) == TOKENS
        # Nearly all of the 1.5 s, but for what a busy machine took to come back from the first.
        assert monotonic_ns() - begun_ns >= 200_000_000


def test_no_usage_and_no_done(client: Client) -> None:
    text = client.text("no-usage;no-done")
    assert all("usage" not in event for event in events_of(text))
    assert "[DONE]" not in text
    assert json.loads(client.text("no-usage", stream=False))["usage"] is None


def test_an_unknown_fault_says_which_there_are(client: Client) -> None:
    response = client.ask("explode")
    assert response.status == 400
    assert b"close-idle" in response.read()


def test_a_fault_leaves_the_next_request_of_the_connection_alone(client: Client) -> None:
    client.text("error")
    client.text("error-event:at=1")
    assert len(contents_of(client.text())) == TOKENS


def test_rules_can_strike_every_path(module_sim: Any) -> None:
    client = Client(module_sim(fault="html:on=all").port)
    with closing(client.connection):
        client.connection.request("GET", "/v1/models")
        response = client.connection.getresponse()
        assert response.headers["content-type"].startswith("text/html")
        response.read()


def test_rules_by_count(module_sim: Any) -> None:
    client = Client(module_sim(fault=["error:every=3", "rate-limit:first=1"]).port)
    with closing(client.connection):
        statuses = []
        for _ in range(6):
            response = client.ask(stream=False)
            response.read()
            statuses.append(response.status)
    assert statuses == [429, 200, 500, 200, 200, 500]


def test_a_slow_listener_serves_each_connection_late(module_sim: Any) -> None:
    port = module_sim(accept_delay=0.2).port
    begun_ns = monotonic_ns()
    clients = [Client(port) for _ in range(2)]
    for client in clients:
        client.connection.connect()
    for client in clients:
        assert client.ask(stream=False).status == 200
        client.connection.close()
    assert monotonic_ns() - begun_ns >= 400_000_000


def test_a_freeze_stops_every_stream(module_sim: Any) -> None:
    server = module_sim(ttft=0.001, itl=0.3)  # Long enough to be frozen on a busy machine too.
    client, admin = Client(server.port), Client(server.port)
    with closing(client.connection), closing(admin.connection):
        response = client.ask()
        admin.connection.request("POST", "/sim/freeze", json.dumps({"seconds": 0.5}))
        span = json.loads(admin.connection.getresponse().read())
        response.read()
    (line,) = server.truth(at_least=1)
    assert span["to_ns"] - span["from_ns"] == 500_000_000
    assert line["end_ns"] >= span["to_ns"]
    assert line["output_tokens"] == TOKENS


def test_planned_freezes_count_from_the_first_request(module_sim: Any) -> None:
    server = module_sim(itl=0.02, freeze="0.05:0.4")
    client = Client(server.port)
    with closing(client.connection):
        client.text()
    (line,) = server.truth(at_least=1)
    assert line["end_ns"] - line["arrival_ns"] >= 450_000_000


def test_a_garbled_request_is_refused_and_the_server_lives(client: Client, server: Any) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as raw:
        raw.sendall(b"NONSENSE\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 400")
    assert len(contents_of(client.text())) == TOKENS


def _truth_of(server: Any, outcome: str) -> list[dict[str, Any]]:
    deadline_ns = monotonic_ns() + 5_000_000_000
    while monotonic_ns() < deadline_ns:
        found = [line for line in server.truth() if line["outcome"] == outcome]
        if found:
            return found
    return []

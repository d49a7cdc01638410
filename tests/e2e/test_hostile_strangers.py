"""A neighbour on the network, and pages of other programs, against a server behind a proxy."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from job_servers import JobServer, StartServer
from people import people

from headway.access.roles import Role
from headway.access.tokens import mint

OPERATIONS = Path(__file__).with_name("hostile_user_ops.py")
WAIT_S = 60.0
BURST = 10


@dataclass
class Gatehouse:
    """A server that believes this host what it says of a request's origin."""

    server: JobServer
    token: str

    def ask(self, method: str, path: str, forwarded: str, **more: str) -> httpx.Response:
        headers = {"x-forwarded-for": forwarded, **more}
        return httpx.request(method, self.server.url + path, headers=headers, timeout=WAIT_S)

    def raw(self, request: bytes) -> bytes:
        """All that is answered until the connection ends."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=WAIT_S) as link:
            link.sendall(request)
            answered = b""
            while piece := link.recv(65536):
                answered += piece
        return answered


@pytest.fixture(scope="module")
def gatehouse(
    start_module_server: StartServer, tmp_path_factory: pytest.TempPathFactory
) -> Gatehouse:
    directory = tmp_path_factory.mktemp("strangers") / "state"
    tokens = people(directory, {"ben": {"blue": Role.USER}})
    server = start_module_server(
        "--state-dir", str(directory), "--trusted-proxy", "127.0.0.1", operations=OPERATIONS
    )
    return Gatehouse(server, tokens["ben"])


def exhaust(gatehouse: Gatehouse, address: str) -> None:
    for _ in range(BURST):
        wrong = {"authorization": f"Bearer {mint().text}"}
        assert gatehouse.ask("GET", "/v1/me", address, **wrong).status_code == 401


@pytest.mark.parametrize("forwarded", ["{}", "198.51.100.1, {}", "::1, 127.0.0.1, {}", "{}, {}"])
def test_no_forged_origin_lets_a_guesser_go_on(gatehouse: Gatehouse, forwarded: str) -> None:
    """A proxy adds whom it saw at the end; what stands before is what the client made up."""
    address = f"203.0.113.{len(forwarded)}"
    exhaust(gatehouse, address)
    wrong = {"authorization": f"Bearer {mint().text}"}
    origin = forwarded.replace("{}", address)
    assert gatehouse.ask("GET", "/v1/me", origin, **wrong).status_code == 429


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_guesses_links_is_slowed_down_too(gatehouse: Gatehouse, method: str) -> None:
    address = f"192.0.2.{len(method)}"
    answers = [
        gatehouse.ask(method, f"/login/link/{mint().text}", address).status_code
        for _ in range(BURST + 2)
    ]
    assert answers == [404] * BURST + [429] * 2


def test_a_guesser_shuts_nobody_out_who_comes_from_elsewhere(gatehouse: Gatehouse) -> None:
    """Proxies that listen on IPv6 write clients of IPv4 so."""
    exhaust(gatehouse, "::ffff:203.0.113.200")
    wrong = {"authorization": f"Bearer {mint().text}"}
    assert gatehouse.ask("GET", "/v1/me", "::ffff:203.0.113.200", **wrong).status_code == 429
    assert gatehouse.ask("GET", "/v1/me", "203.0.113.200", **wrong).status_code == 429
    assert gatehouse.ask("GET", "/v1/me", "::ffff:203.0.113.201", **wrong).status_code == 401


def test_a_trailer_tells_neither_who_asks_nor_from_where(gatehouse: Gatehouse) -> None:
    head = (
        "GET /v1/me HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: 203.0.113.99\r\n"
        "connection: close\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    )
    trailer = f"authorization: Bearer {gatehouse.token}\r\n\r\n"
    assert gatehouse.raw((head + trailer).encode()).startswith(b"HTTP/1.1 401")


def test_a_session_is_known_beside_the_cookies_of_other_programs(gatehouse: Gatehouse) -> None:
    address = "198.51.100.77"
    bearer = {"authorization": f"Bearer {gatehouse.token}"}
    link = gatehouse.ask("POST", "/v1/login-links", address, **bearer).json()["path"]
    begun = gatehouse.ask("POST", link, address, origin=gatehouse.server.url)
    session = begun.headers["set-cookie"].partition(";")[0]
    for foreign in ('prefs={"a":1}; ', "expires=never; ", "odd; ", "a=b c; "):
        me = gatehouse.ask("GET", "/v1/me", address, cookie=foreign + session)
        assert me.json().get("user") == "ben", foreign


def test_one_endless_field_of_a_stranger_is_cut_off(gatehouse: Gatehouse) -> None:
    """Each piece of it was copied with all before: one connection kept everybody waiting."""
    with socket.create_connection(("127.0.0.1", gatehouse.server.port), timeout=WAIT_S) as link:
        link.sendall(
            b"POST /login HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: "
        )
        with pytest.raises(ConnectionError):
            send_much(link)
    assert httpx.get(f"{gatehouse.server.url}/healthz", timeout=WAIT_S).status_code == 200


def send_much(link: socket.socket) -> None:
    for _ in range(4096):
        link.sendall(b"a" * 65536)

"""The socket of a server: free again at once."""

from __future__ import annotations

import asyncio
import socket
from contextlib import closing

import pytest

from headway.api.listening import address_of_host, listening_socket, url_of
from headway.core.errors import ConfigError


@pytest.mark.parametrize("host", ["example.com", "", "1.2.3", "127.0.0.1:80"])
def test_what_is_no_address_is_refused_with_what_to_write(host: str) -> None:
    with pytest.raises(ConfigError, match="is not an address; write --host"):
        address_of_host(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_is_told_from_the_rest(host: str) -> None:
    assert address_of_host(host).is_loopback
    assert not address_of_host("0.0.0.0").is_loopback


def test_a_port_with_connections_of_a_dead_server_can_be_bound_again() -> None:
    """Trap 19: the next start failed."""
    first = listening_socket("127.0.0.1", 0)
    port = first.getsockname()[1]
    with closing(socket.create_connection(("127.0.0.1", port))) as client:
        first.setblocking(True)
        accepted, _ = first.accept()
        accepted.close()  # the server's side closes first and is left in TIME_WAIT
        first.close()
        client.recv(1)
    with closing(listening_socket("127.0.0.1", port)) as second:
        assert url_of(second) == f"http://127.0.0.1:{port}"


async def test_no_part_of_an_answer_is_held_back() -> None:
    """Also on asyncio's own loop: a read took 40 ms more for each answer of two parts."""
    seen: list[int] = []

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken = writer.get_extra_info("socket")
        seen.append(taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    listening = listening_socket("127.0.0.1", 0)
    async with await asyncio.start_server(accepted, sock=listening):
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        await reader.read()
        writer.close()
    assert seen == [1]


def test_a_port_that_is_taken_is_said_with_what_to_do() -> None:
    with closing(listening_socket("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} of 127.0.0.1 is taken.*--port"):
            listening_socket("127.0.0.1", port)

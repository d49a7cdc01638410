"""One look-up for many connections, and which address comes first."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from headway.wire.addresses import AddressBook

FOUND = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", 80)) for last in (1, 2, 3)]


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The resolver's answer is outside of our hands; here it is fixed and counted."""
    asked: list[str] = []

    def getaddrinfo(host: str, *_: Any, **__: Any) -> list[Any]:
        asked.append(host)
        return list(FOUND)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def firsts(candidates: list[list[Any]]) -> list[str]:
    return [found[0][4][0] for found in candidates]


async def test_connections_that_start_together_share_one_look_up(lookups: list[str]) -> None:
    book = AddressBook("target", 80, spread=False)
    await asyncio.gather(*[book.candidates() for _ in range(50)])
    assert lookups == ["target"]


async def test_the_address_that_connected_stays_first(lookups: list[str]) -> None:
    book = AddressBook("target", 80, spread=False)
    await book.candidates()
    book.pin(("127.0.0.2", 80))
    assert firsts([await book.candidates() for _ in range(3)]) == ["127.0.0.2"] * 3
    assert len(await book.candidates()) == 3


async def test_spread_goes_round_the_addresses(lookups: list[str]) -> None:
    book = AddressBook("target", 80, spread=True)
    order = firsts([await book.candidates() for _ in range(4)])
    assert order == ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.1"]


async def test_a_name_is_looked_up_again_when_none_of_its_addresses_connects(
    lookups: list[str],
) -> None:
    book = AddressBook("target", 80, spread=False)
    await book.candidates()
    book.forget()
    await book.candidates()
    assert len(lookups) == 2

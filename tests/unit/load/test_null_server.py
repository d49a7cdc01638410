"""The null server: it is there when asked for, and gone when closed (N3)."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from headway.core.errors import WorkerLost
from headway.load.null_server import NullServer


async def test_it_answers_where_it_says_and_is_gone_when_closed() -> None:
    server = NullServer()
    try:
        address = urlsplit(await server.url())
        assert address.hostname is not None
        assert address.port is not None
        with socket.create_connection((address.hostname, address.port), timeout=5):
            pass
    finally:
        server.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname, address.port), timeout=5)


async def test_closing_it_before_it_is_ready_and_closing_it_twice_is_fine() -> None:
    """A run that fails early (no such target) has started it for nothing."""
    server = NullServer()
    server.close()
    server.close()


async def test_one_that_cannot_start_is_a_sentence_and_not_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("raise ImportError('libfoo is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = NullServer()
    try:
        with pytest.raises(WorkerLost, match="ended before it was ready"):
            await server.url()
    finally:
        server.close()

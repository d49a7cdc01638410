"""What a service manager is told, on real datagram sockets: sd_notify(3)."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.dispatch.service_manager import ServiceManager

PID = 4711


@pytest.fixture(params=["path", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    name = f"headway-test-{os.getpid()}-{secrets.token_hex(4)}"
    return str(tmp_path / "notify") if request.param == "path" else f"@{name}"


@pytest.fixture
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address.replace("@", "\0", 1))
        manager.settimeout(60)
        yield manager


def told(listening: socket.socket) -> list[str]:
    return listening.recv(4096).decode().split("\n")


def test_each_message_is_a_datagram_of_lines(address: str, listening: socket.socket) -> None:
    manager = ServiceManager.from_environ({"NOTIFY_SOCKET": address}, PID)
    manager.ready("serving")
    assert told(listening) == ["READY=1", "STATUS=serving"]
    manager.alive()
    assert told(listening) == ["WATCHDOG=1"]
    manager.stopping("stopping")
    assert told(listening) == ["STOPPING=1", "STATUS=stopping"]


def test_after_a_trouble_the_state_is_told_again(address: str, listening: socket.socket) -> None:
    manager = ServiceManager(address)
    manager.ready("serving")
    manager.trouble("it hangs")
    manager.well()
    assert [told(listening)[-1] for _ in range(3)] == [
        "STATUS=serving", "STATUS=it hangs", "STATUS=serving",
    ]  # fmt: skip


def test_a_line_feed_in_a_text_begins_no_other_variable(
    address: str, listening: socket.socket
) -> None:
    ServiceManager(address).trouble("broken\nREADY=1\n")
    assert told(listening) == ["STATUS=broken READY=1"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "1500000", "WATCHDOG_PID": str(PID)}, 1.5),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID + 1)}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({}, None),
    ],
)
def test_a_watchdog_is_ours_when_its_time_is_a_number_and_its_process_this_one(
    more: dict[str, str], expected: float | None
) -> None:
    manager = ServiceManager.from_environ({"NOTIFY_SOCKET": "/run/notify", **more}, PID)
    assert manager.watchdog_s == expected


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "notify"])
def test_where_nobody_can_be_told_nobody_is_and_no_watchdog_waits(address: str) -> None:
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"}
    manager = ServiceManager.from_environ(environ, PID)
    manager.ready("serving")
    assert manager.watchdog_s is None


def test_a_manager_that_is_gone_or_full_is_logged_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = ServiceManager(str(tmp_path / "gone"), watchdog_s=1.0)
    for _ in range(3):
        manager.alive()
    assert len(caplog.records) == 1
    assert "NOTIFY_SOCKET" in caplog.text


def test_a_sign_of_life_does_not_wait_for_room(address: str, listening: socket.socket) -> None:
    """Nobody reads: the kernel keeps a few datagrams, and the event loop must not wait for more."""
    manager = ServiceManager(address)
    for _ in range(1000):
        manager.alive()
    assert told(listening) == ["WATCHDOG=1"]

"""The two clients are one interface."""

from __future__ import annotations

import inspect

import pytest

from headway.client import AsyncClient, Client
from headway.client.address import DEFAULT_SERVER, server_address
from headway.core.errors import ConfigError


def public_methods(client: type) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(method).parameters)
        for name, method in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }


def test_both_clients_have_the_same_methods_with_the_same_parameters() -> None:
    """J21: the same names, so that code moves between them by adding `await`."""
    assert public_methods(Client) == public_methods(AsyncClient)
    expected = {
        "submit", "submit_batch", "run", "get", "list", "wait", "result", "logs", "follow",
        "cancel", "retry", "events", "why",
        "operations", "artifacts", "artifact", "download", "close",
        "perform", "login_link",
    }  # fmt: skip
    assert public_methods(Client).keys() == expected


def test_the_server_is_the_argument_then_the_environment_then_this_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HEADWAY_SERVER", raising=False)
    assert server_address(None) == DEFAULT_SERVER
    monkeypatch.setenv("HEADWAY_SERVER", "http://gpu-1:8484/")
    assert server_address(None) == "http://gpu-1:8484"
    assert server_address("https://other") == "https://other"


@pytest.mark.parametrize("address", ["gpu-1:8484", "ftp://gpu-1", "http://", "8484"])
def test_an_address_that_is_none_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(ConfigError, match="is not a server address; write it like http://"):
        server_address(address)

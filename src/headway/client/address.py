"""Where the server is."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from headway.core.errors import ConfigError

SERVER_VARIABLE = "HEADWAY_SERVER"
DEFAULT_PORT = 8484
DEFAULT_SERVER = f"http://127.0.0.1:{DEFAULT_PORT}"


def server_address(server: str | None) -> str:
    """The server's base URL: the argument, else HEADWAY_SERVER, else the default on this host.

    Raises:
        ConfigError: it is not an http or https URL with a host.
    """
    address = server or os.environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(
            f"{address!r} is not a server address; write it like {DEFAULT_SERVER}"
            f" (argument, --server, or {SERVER_VARIABLE})"
        )
    return address.rstrip("/")

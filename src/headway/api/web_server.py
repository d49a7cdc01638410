"""uvicorn, with everything but HTTP left to us."""

from __future__ import annotations

import resource
import ssl
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

from headway.api.http_protocol import Connections, GuardedConfig, GuardedProtocol
from headway.api.limits import ConnectionLimits

# When told to stop, every stream and every waiting request ends by itself; this is for the rest.
_LAST_ANSWERS_S = 3
# Longer than clients keep idle connections, so that none is closed in the moment of its next use.
_KEEP_ALIVE_S = 75
# Open files that are kept for everything but connections: the store, logs, doorbells, jobs.
_OTHER_FILES = 256


class WebServer(uvicorn.Server):
    """Answers HTTP on sockets that are open already; signals are the business of its owner.

    Args:
        app: What answers.
        limits: Of connections.
        trusted: Addresses of proxies in front of this server.
        tls: What to show clients that connect by TLS; None: they connect without.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: ConnectionLimits | None = None,
        trusted: Container[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        config = GuardedConfig(
            app,
            http=GuardedProtocol,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            timeout_keep_alive=_KEEP_ALIVE_S,
            ssl_context_factory=None if tls is None else lambda *_: tls,
        )
        config.limits = _possible(limits or ConnectionLimits())
        config.counts = Connections(config.limits, trusted)
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers as they are."""
        yield


def _possible(limits: ConnectionLimits) -> ConnectionLimits:
    """The limits, with no more connections than the system lets this process have."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return limits
    return replace(limits, most=min(limits.most, max(16, files - _OTHER_FILES)))

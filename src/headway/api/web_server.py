"""uvicorn, with everything but HTTP left to us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

# When told to stop, every stream and every waiting request ends by itself; this is for the rest.
_LAST_ANSWERS_S = 3
# Longer than clients keep idle connections, so that none is closed in the moment of its next use.
_KEEP_ALIVE_S = 75


class WebServer(uvicorn.Server):
    """Answers HTTP on sockets that are open already; signals are the business of its owner.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
            timeout_keep_alive=_KEEP_ALIVE_S,
        )
        super().__init__(config)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers as they are."""
        yield

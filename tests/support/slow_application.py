"""An application behind a limit of bodies, which has read a request and takes its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request

from headway.api.body_limit import BodyLimit
from headway.api.problems import install_problem_handlers


class Slow:
    """Answers with the size of what it read, when it may.

    Args:
        together_bytes, of_one_bytes: Of the limit.
        entrance: A middleware around it; None: nobody says whose a request is.
    """

    def __init__(
        self, together_bytes: int, of_one_bytes: int, entrance: type | None = None
    ) -> None:
        self._limits = {"together_bytes": together_bytes, "of_one_bytes": of_one_bytes}
        self._entrance = entrance
        self.read = asyncio.Semaphore(0)
        self.go = asyncio.Event()

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client of it."""
        transport = httpx.ASGITransport(self._application())
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
            yield http

    def _application(self) -> FastAPI:
        app = FastAPI()
        install_problem_handlers(app)

        async def take(request: Request) -> int:
            size = len(await request.body())
            self.read.release()
            await self.go.wait()
            return size

        app.add_api_route("/", take, methods=["POST"])
        if self._entrance is not None:
            app.add_middleware(self._entrance)
        app.add_middleware(BodyLimit, limit_bytes=800, **self._limits)
        return app

"""Routes for those who watch the server: liveness, readiness, metrics."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Response
from pydantic import BaseModel

from headway.api.metrics import MetricsPage
from headway.api.problems import Refusal, problem_answers
from headway.api.readiness import NotReady

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class HealthRoutes:
    """`/healthz`, `/readyz` and `/metrics`.

    Args:
        not_ready: Why the server is not ready; None when it is.
        metrics: Makes the page of metrics.
    """

    def __init__(self, not_ready: Callable[[], NotReady | None], metrics: MetricsPage) -> None:
        self._not_ready = not_ready
        self._metrics = metrics

    def router(self) -> APIRouter:
        router = APIRouter(tags=["health"])
        router.add_api_route("/healthz", self.healthz, response_model=Health)
        router.add_api_route(
            "/readyz", self.readyz, response_model=Health, responses=problem_answers(503)
        )
        router.add_api_route(
            "/metrics",
            self.metrics,
            response_class=Response,
            responses={
                200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
                **problem_answers(503),
            },
        )
        return router

    async def healthz(self) -> Health:
        """The API process lives."""
        return Health()

    async def readyz(self) -> Health:
        """The server takes jobs and runs them."""
        reason = self._not_ready()
        if reason is not None:
            raise Refusal(503, reason.value, headers={"retry-after": "1"})
        return Health()

    async def metrics(self) -> Response:
        """Prometheus metrics of all processes of this server."""
        return Response(await self._metrics.render(), media_type=METRICS_MEDIA_TYPE)

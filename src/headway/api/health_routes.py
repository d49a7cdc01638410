"""Routes for those who watch the server: liveness, readiness, metrics."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel

from headway.api.metrics import MetricsPage
from headway.api.problems import Refusal, problem_answers
from headway.api.readiness import Readiness

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class HealthRoutes:
    """`/healthz`, `/readyz` and `/metrics`.

    Args:
        readiness: Says what is in the way of jobs.
        metrics: Makes the page of metrics.
    """

    def __init__(self, readiness: Readiness, metrics: MetricsPage) -> None:
        self._readiness = readiness
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
        obstacle = await self._readiness.obstacle()
        if obstacle is not None:
            raise Refusal(503, obstacle, headers={"retry-after": "1"})
        return Health()

    async def metrics(self) -> Response:
        """Prometheus metrics of all processes of this server."""
        return Response(await self._metrics.render(), media_type=METRICS_MEDIA_TYPE)

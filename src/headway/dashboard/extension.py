"""Puts the dashboard together for a server."""

from __future__ import annotations

from fastapi import APIRouter

from headway.api.extension import ExtensionParts
from headway.dashboard.routes import DashboardRoutes

BENCH = "bench"
"""The operation that runs load tests; a server may do without."""


def dashboard(parts: ExtensionParts) -> APIRouter:
    """The routes of all pages."""
    with_runs = parts.registry.get(BENCH) is not None
    router = APIRouter(include_in_schema=False)
    router.include_router(DashboardRoutes(parts, with_runs=with_runs).router())
    return router

"""Puts the dashboard together for a server."""

from __future__ import annotations

from fastapi import APIRouter

from headway.api.extension import ExtensionParts
from headway.dashboard.job_parts import BENCH
from headway.dashboard.new_run import SpecOf
from headway.dashboard.routes import DashboardRoutes
from headway.dashboard.run_routes import RunRoutes


def dashboard(parts: ExtensionParts, spec_of: SpecOf) -> APIRouter:
    """The routes of all pages.

    Args:
        parts: The API's own parts.
        spec_of: The parser of `headway bench`, for the form of a new run.
    """
    with_runs = parts.registry.get(BENCH) is not None
    router = APIRouter(include_in_schema=False)
    router.routes.extend(DashboardRoutes(parts, with_runs=with_runs).router().routes)
    if with_runs:
        router.routes.extend(RunRoutes(parts, spec_of).router().routes)
    return router

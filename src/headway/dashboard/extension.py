"""Puts the dashboard together for a server."""

from __future__ import annotations

from fastapi import APIRouter

from headway.api.extension import ExtensionParts
from headway.api.sessions import Sessions
from headway.dashboard.job_parts import BENCH
from headway.dashboard.new_run import SpecOf
from headway.dashboard.routes import DashboardRoutes
from headway.dashboard.run_routes import RunRoutes
from headway.dashboard.sign_in_routes import SignInRoutes


def dashboard(parts: ExtensionParts, spec_of: SpecOf) -> APIRouter:
    """The routes of all pages.

    Args:
        parts: The API's own parts.
        spec_of: The parser of `headway bench`, for the form of a new run.
    """
    with_runs = parts.registry.get(BENCH) is not None
    router = APIRouter(include_in_schema=False)
    router.routes.extend(DashboardRoutes(parts, with_runs=with_runs).router().routes)
    sessions = Sessions(parts.entrance.accounts, parts.clock)
    router.routes.extend(SignInRoutes(sessions, parts.entrance).router().routes)
    if with_runs:
        router.routes.extend(RunRoutes(parts, spec_of).router().routes)
    return router

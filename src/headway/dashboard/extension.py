"""Puts the dashboard together for a server."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from starlette.routing import BaseRoute

from headway.api.extension import ExtensionParts
from headway.api.oidc_settings import OidcSettings
from headway.api.sessions import Sessions
from headway.core.errors import ConfigError
from headway.dashboard.job_parts import BENCH
from headway.dashboard.new_run import SpecOf
from headway.dashboard.routes import DashboardRoutes
from headway.dashboard.run_routes import RunRoutes
from headway.dashboard.sign_in_routes import SignInRoutes


@dataclass(frozen=True)
class WayIn:
    """How people sign in besides with a token.

    Attributes:
        oidc: An OpenID provider.
        public_url: This server's address as that provider knows it; None: as the browser says.
    """

    oidc: OidcSettings | None
    public_url: str | None


def dashboard(parts: ExtensionParts, spec_of: SpecOf, way_in: WayIn | None = None) -> APIRouter:
    """The routes of all pages.

    Args:
        parts: The API's own parts.
        spec_of: The parser of `headway bench`, for the form of a new run.
        way_in: How people sign in besides with a token.

    Raises:
        ConfigError: what signing in at a provider needs is not installed.
    """
    with_runs = parts.registry.get(BENCH) is not None
    router = APIRouter(include_in_schema=False)
    router.routes.extend(DashboardRoutes(parts, with_runs=with_runs).router().routes)
    sessions = Sessions(parts.entrance.accounts, parts.clock)
    provider = None if way_in is None or way_in.oidc is None else way_in.oidc.name
    router.routes.extend(SignInRoutes(sessions, parts.entrance, provider).router().routes)
    if way_in is not None and way_in.oidc is not None:
        router.routes.extend(_oidc_routes(parts, sessions, way_in.oidc, way_in.public_url))
    if with_runs:
        router.routes.extend(RunRoutes(parts, spec_of).router().routes)
    return router


def _oidc_routes(
    parts: ExtensionParts, sessions: Sessions, settings: OidcSettings, public_url: str | None
) -> list[BaseRoute]:
    try:
        from headway.api.oidc_client import OidcClient
    except ImportError as error:
        raise ConfigError(
            f"signing in at a provider needs more: pip install 'headway[oidc]' ({error})"
        ) from error
    from headway.dashboard.oidc_routes import OidcRoutes

    client = OidcClient(settings, parts.clock)
    return OidcRoutes(client, settings, sessions, parts.entrance, public_url).router().routes

"""Signing in at an OpenID provider: there, and back."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from headway.access.accounts import Act
from headway.api.authenticator import address_of
from headway.api.entrance import Entrance
from headway.api.oidc_accounts import OidcAccounts
from headway.api.oidc_client import LOGIN_S, LoginFailed, OidcClient
from headway.api.oidc_settings import OidcSettings
from headway.api.sessions import SessionCookie, Sessions, cookie_value
from headway.dashboard.responses import html_response, see_other
from headway.dashboard.sign_in_page import refused_page
from headway.dashboard.sign_in_routes import HOME, Next, note_failure, safe_path

CALLBACK = "/login/oidc/callback"


class OidcRoutes:
    """`/login/oidc` and where the provider sends people back to.

    Args:
        client: Speaks to the provider.
        settings: What its groups mean here.
        sessions: Begins sessions.
        entrance: Has the accounts, and is told of changes.
        public_url: This server's address; None: as the browser says.
    """

    def __init__(
        self,
        client: OidcClient,
        settings: OidcSettings,
        sessions: Sessions,
        entrance: Entrance,
        public_url: str | None,
    ) -> None:
        self._client = client
        self._people = OidcAccounts(entrance.accounts, settings)
        self._sessions = sessions
        self._entrance = entrance
        self._public_url = public_url

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/login/oidc", self.leave)
        router.add_api_route(CALLBACK, self.come_back)
        return router

    async def leave(self, request: Request, next_path: Next = HOME) -> Response:
        """Go to the provider."""
        self._entrance.authenticator.check_address(address_of(request.scope))
        base = self._public_url or f"{request.url.scheme}://{request.url.netloc}"
        try:
            login = await self._client.begin(base.rstrip("/") + CALLBACK, safe_path(next_path))
        except LoginFailed as failure:
            return _refused(failure, 502)
        response = see_other(login.address)
        SessionCookie(request.scope).give_ticket(response, login.ticket, LOGIN_S)
        return response

    async def come_back(self, request: Request) -> Response:
        """Begin a session for whoever the provider vouches for."""
        address = address_of(request.scope)
        self._entrance.authenticator.check_address(address)
        cookie = SessionCookie(request.scope)
        ticket = cookie_value(request.scope, cookie.ticket_name) or ""
        try:
            arrival = await self._client.finish(ticket, dict(request.query_params))
            user = await self._people.admit(arrival.claims, address)
        except LoginFailed as failure:
            note_failure(self._entrance, request, f"GET {CALLBACK}", 403)
            response = _refused(failure, 403)
            cookie.give_ticket(response, "", 0)
            return response
        finally:
            self._entrance.changed()
        act = Act(user=user.name, via="oidc", address=address)
        text = await self._sessions.begin(user.name, "signed in at the provider", None, act)
        response = see_other(arrival.next_path)
        cookie.give(response, text, self._sessions.settings.provider_s)
        cookie.give_ticket(response, "", 0)
        return response


def _refused(failure: LoginFailed, status: int) -> Response:
    text = str(failure)
    sentence = f"{text[:1].upper()}{text[1:]}."
    return html_response(refused_page("You are not signed in", sentence), status)

"""The routes by which a browser signs in, out, and changes the workspace that it shows."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qs, quote

from fastapi import APIRouter, Path, Query, Request, Response

from headway.access.accounts import Act, Token, TokenKind
from headway.api.audit_trail import act_of
from headway.api.authenticator import WORKSPACES_KEY, address_of
from headway.api.entrance import Entrance
from headway.api.identity import Caller
from headway.api.problems import Refusal
from headway.api.sessions import SessionCookie, Sessions
from headway.client.models import LoginLink
from headway.dashboard.responses import html_response, see_other
from headway.dashboard.sign_in_page import link_page, refused_page, sign_in_page

MAX_FORM_BYTES = 8 * 1024
HOME = "/jobs"
_NOT_VALID = "This is no valid access token of this server, or it has expired or was revoked."
_SPENT = "This link has been used already, or is older than a minute."

Code = Annotated[str, Path(max_length=200, pattern=r"^[0-9a-z_]+$")]
Next = Annotated[str, Query(alias="next", max_length=2000)]


class SignInRoutes:
    """`/login`, `/login/link/CODE`, `/logout`, `/workspace` and `/v1/login-links`.

    Args:
        sessions: Begins and ends sessions.
        entrance: Is told of them, and slows down who guesses.
        provider: The name of the OpenID provider at which one can sign in too, if there is one.
    """

    def __init__(self, sessions: Sessions, entrance: Entrance, provider: str | None = None) -> None:
        self._sessions = sessions
        self._entrance = entrance
        self._guesses = entrance.authenticator
        self._provider = provider

    def router(self) -> APIRouter:
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/login", self.form)
        router.add_api_route("/login", self.sign_in, methods=["POST"])
        router.add_api_route("/login/link/{code}", self.ask)
        router.add_api_route("/login/link/{code}", self.follow, methods=["POST"])
        router.add_api_route("/logout", self.sign_out, methods=["POST"])
        router.add_api_route("/workspace", self.show, methods=["POST"])
        router.add_api_route("/v1/login-links", self.new_link, methods=["POST"])
        return router

    async def form(self, request: Request, next_path: Next = HOME) -> Response:
        """The form, unless the browser is signed in."""
        path = safe_path(next_path)
        known = await self._sessions.of(request.scope) is not None
        if known or not await self._entrance.accounts.exist():
            return see_other(path)
        return html_response(sign_in_page(path, problem=None, provider=self._provider))

    async def sign_in(self, request: Request) -> Response:
        """Begin a session with a token."""
        fields = await _form(request)
        path = safe_path(fields.get("next", HOME))
        address = address_of(request.scope)
        self._guesses.check_address(address)
        grant = await self._sessions.grant_of(fields.get("token", "").strip(), TokenKind.PERSONAL)
        if grant is None:
            note_failure(self._entrance, request, "POST /login", 401)
            page = sign_in_page(path, problem=_NOT_VALID, provider=self._provider)
            return html_response(page, 401)
        return await self._begun(request, grant.token, "signed in with a token", path)

    async def ask(self, request: Request, code: Code) -> Response:
        """Ask before a link is used: whatever fetches addresses must not use it up."""
        self._guesses.check_address(address_of(request.scope))
        grant = await self._sessions.grant_of(code, TokenKind.LINK)
        if grant is None or grant.token.user is None:
            return self._wrong_link(request)
        return html_response(link_page(code, grant.token.user))

    async def follow(self, request: Request, code: Code) -> Response:
        """Begin a session with a link."""
        self._guesses.check_address(address_of(request.scope))
        grant = await self._sessions.grant_of(code, TokenKind.LINK)
        token = None
        if grant is not None:
            token = await self._sessions.spend(grant, _act(request, grant.token))
        if token is None:
            return self._wrong_link(request)
        return await self._begun(request, token, "signed in with a link", HOME)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        response = see_other("/login")
        session = await self._sessions.of(request.scope)
        if session is not None:
            await self._sessions.end(session, _act(request, session))
            self._entrance.changed()
        SessionCookie(request.scope).take_back(response)
        return response

    async def show(self, request: Request, caller: Caller) -> Response:
        """Show another workspace from now on."""
        fields = await _form(request)
        wanted = fields.get("workspace", "")
        if wanted not in request.scope.get(WORKSPACES_KEY, {}):
            raise Refusal(404, f"there is no workspace {wanted[:100]!r}")
        response = see_other(safe_path(fields.get("next", HOME)))
        lasts_s = self._sessions.settings.absolute_s
        SessionCookie(request.scope).show(response, wanted, lasts_s)
        return response

    async def new_link(self, request: Request, caller: Caller) -> LoginLink:
        """Where the caller's browser goes to be signed in; good once, for a minute."""
        if caller.via == "local":
            return LoginLink(path=HOME)
        code = await self._sessions.link(caller, act_of(caller, address_of(request.scope)))
        if code is None:
            raise Refusal(403, "only a user's own access token can open a browser session")
        return LoginLink(path=f"/login/link/{quote(code)}")

    async def _begun(self, request: Request, token: Token, label: str, path: str) -> Response:
        user, act = token.user or "", _act(request, token)
        before = await self._sessions.of(request.scope)
        if before is not None:
            await self._sessions.end(before, act)
            self._entrance.changed()
        text = await self._sessions.begin(user, label, token, act)
        response = see_other(path)
        lasts_s = self._sessions.settings.absolute_s
        SessionCookie(request.scope).give(response, text, lasts_s)
        return response

    def _wrong_link(self, request: Request) -> Response:
        note_failure(self._entrance, request, f"{request.method} /login/link/{{code}}", 404)
        return html_response(refused_page("This link is not good any more", _SPENT), 404)


def safe_path(path: str) -> str:
    """`path` when it leads to a page of this server and nowhere else; else the first page.

    Browsers take a backslash for a slash, two slashes for the start of another host, and leave out
    control characters before they look.
    """
    plain = path.startswith("/") and path.isprintable() and "\\" not in path
    if not plain or path.startswith(("//", "/login")):
        return HOME
    return quote(path, safe="/?&=%+:,~@!$'()*;-._")


def note_failure(entrance: Entrance, request: Request, call: str, status: int) -> None:
    """Somebody was not signed in: slow it down, and note it as the gate notes other denials."""
    address = address_of(request.scope)
    entrance.authenticator.note_failure(address)
    entrance.trail.denied(None, address, call, status, None)


def _act(request: Request, token: Token) -> Act:
    address = address_of(request.scope)
    return Act(user=token.user or "", via="session", token_id=token.id, address=address)


async def _form(request: Request) -> dict[str, str]:
    if int(request.headers.get("content-length", MAX_FORM_BYTES + 1)) > MAX_FORM_BYTES:
        raise Refusal(413, "the form is too large")
    try:
        fields = parse_qs((await request.body()).decode(), max_num_fields=20)
    except ValueError:
        raise Refusal(422, "the form cannot be read") from None
    return {name: values[-1] for name, values in fields.items()}

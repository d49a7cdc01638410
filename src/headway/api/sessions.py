"""Sessions of browsers: a token in a cookie, good for nothing else.

A session is stored as a token of its own kind whose parent is the token (or the link of one) that
it began with, so revoking that ends it at once, like everything the store knows of tokens: hashed,
listed, audited. The cookie cannot be read by scripts, and is sent by no form or `fetch` of another
site (SameSite); what changes something must besides say that a page of this server sent it, which
decision 0027 gives the reasons for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from headway.access.accounts import Act, Grant, NewToken, Token, TokenKind
from headway.access.identity import Identity
from headway.access.tokens import mint, parse
from headway.api.authenticator import Shown
from headway.api.problems import Refusal
from headway.api.request_guard import SAFE_METHODS
from headway.core.clock import Clock
from headway.store.accounts import AccountStore


@dataclass(frozen=True)
class SessionSettings:
    """How long sessions last.

    Attributes:
        absolute_s: It is over after so long in any case.
        provider_s: The same for one that began at an OpenID provider, which is asked anew then.
        link_s: How long a link of `headway login --browser` is good.
    """

    absolute_s: float = 7 * 24 * 3600.0
    provider_s: float = 12 * 3600.0
    link_s: float = 60.0


class SessionCookie:
    """The cookies of one server: a session, and the workspace that its pages show.

    Cookies do not know ports, so their names do: two servers of one host would else sign each
    other's users out.
    """

    def __init__(self, scope: Scope) -> None:
        self._secure = scope["scheme"] == "https"
        port = (scope.get("server") or ("", 0))[1]
        # Browsers take a cookie of this prefix from https only, and for this host alone.
        prefix = "__Host-" if self._secure else ""
        self.name = f"{prefix}headway-{port}"
        self.ticket_name = f"{prefix}headway-login-{port}"
        self.workspace_name = f"{prefix}headway-workspace-{port}"

    def give(self, response: Response, text: str, max_age_s: float) -> None:
        self._set(response, self.name, text, max_age_s)

    def give_ticket(self, response: Response, text: str, max_age_s: float) -> None:
        """What a browser brings back from a login elsewhere."""
        self._set(response, self.ticket_name, text, max_age_s)

    def take_back(self, response: Response) -> None:
        for name in (self.name, self.workspace_name):
            self._set(response, name, "", 0)

    def show(self, response: Response, workspace: str, max_age_s: float) -> None:
        """Remember the workspace that pages show."""
        self._set(response, self.workspace_name, workspace, max_age_s)

    def _set(self, response: Response, name: str, value: str, max_age_s: float) -> None:
        response.set_cookie(
            name, value, max_age=int(max_age_s), path="/", secure=self._secure, httponly=True,
            samesite="lax",
        )  # fmt: skip


class Sessions:
    """Begins and ends sessions; the authenticator recognizes them by `session_cookie`.

    Args:
        accounts: Keeps them.
        clock: Says when they are over.
        settings: How long they last.
    """

    def __init__(
        self, accounts: AccountStore, clock: Clock, settings: SessionSettings | None = None
    ) -> None:
        self.settings = settings or SessionSettings()
        self._accounts = accounts
        self._clock = clock

    async def begin(self, user: str, label: str, parent: Token | None, act: Act) -> str:
        """A new session; the text for its cookie. It outlives its parent in nothing.

        Args:
            user: Whose.
            label: How it began.
            parent: The token that it began with; None after a login at a provider.
            act: For the audit log.
        """
        minted = mint()
        settings = self.settings
        lasts_s = settings.provider_s if parent is None else settings.absolute_s
        expires_at = self._clock.now() + timedelta(seconds=lasts_s)
        if parent is not None and parent.expires_at is not None:
            expires_at = min(expires_at, parent.expires_at)
        token = NewToken(
            id=minted.id,
            secret_hash=minted.secret_hash,
            kind=TokenKind.SESSION,
            label=label,
            user=user,
            workspace=None if parent is None else parent.workspace,
            role=None if parent is None else parent.role,
            parent=None if parent is None else parent.id,
            expires_at=expires_at,
        )
        await self._accounts.add_token(token, act)
        return minted.text

    async def link(self, caller: Identity, act: Act) -> str | None:
        """A code that begins a session of the caller, once and soon; None: it has no token."""
        parent = None if caller.token_id is None else await self._accounts.token(caller.token_id)
        if parent is None or parent.user is None or parent.kind is not TokenKind.PERSONAL:
            return None
        minted = mint()
        token = NewToken(
            id=minted.id,
            secret_hash=minted.secret_hash,
            kind=TokenKind.LINK,
            label="link for a browser",
            user=parent.user,
            workspace=parent.workspace,
            role=parent.role,
            parent=parent.id,
            expires_at=self._clock.now() + timedelta(seconds=self.settings.link_s),
        )
        await self._accounts.add_token(token, act)
        return minted.text

    async def grant_of(self, text: str, kind: TokenKind) -> Grant | None:
        """What a token of this kind grants; None: it is no such token, or not good any more."""
        presented = parse(text)
        grant = None if presented is None else await self._accounts.grant(presented.id)
        if presented is None or grant is None or not presented.matches(grant.secret_hash):
            return None
        live = grant.token.kind is kind and grant.token.is_live(self._clock.now())
        return grant if live else None

    async def spend(self, grant: Grant, act: Act) -> Token | None:
        """Use up a link: the token that stands behind it. Only one caller ever gets it."""
        spent = await self._accounts.spend_token(grant.token.id, act)
        if spent is None or spent.parent is None:
            return None
        return await self._accounts.token(spent.parent)

    async def of(self, scope: Scope) -> Token | None:
        """The session that a request's cookie names; None: there is none, or it is over."""
        text = cookie_value(scope, SessionCookie(scope).name)
        grant = None if text is None else await self.grant_of(text, TokenKind.SESSION)
        return None if grant is None else grant.token

    async def end(self, session: Token, act: Act) -> None:
        """End a session, and with it everything that began with it."""
        await self._accounts.revoke_token(session.id, act)


def session_cookie(headers: Headers, scope: Scope) -> Shown | None:
    """The token of a browser's session, for the authenticator.

    Raises:
        Refusal: 403; the request changes something, and does not say that it comes from a page of
            this server. That it does not come from another's, the guard before all routes has seen.
    """
    if "cookie" not in headers:
        return None
    cookie = SessionCookie(scope)
    text = cookie_value(scope, cookie.name)
    if text is None:
        return None
    if scope["method"] not in SAFE_METHODS and not _says_where_from(headers):
        raise Refusal(
            403,
            "with a session's cookie, a request that changes something says in Origin or"
            " Sec-Fetch-Site where it comes from; programs use a token",
        )
    return Shown(text, "session", cookie_value(scope, cookie.workspace_name))


def cookie_value(scope: Scope, name: str) -> str | None:
    """The value of a cookie; None: it was not sent, or twice, as nobody honest does.

    Not by the parser of the standard library, which at the first cookie that is not as it should
    be forgets all: other programs of this host could so sign everybody out.
    """
    found = []
    for header, value in scope["headers"]:
        if header == b"cookie":
            pairs = (pair.partition("=") for pair in value.decode("latin-1").split(";"))
            found += [
                _unquoted(text) for key, equals, text in pairs if equals and key.strip() == name
            ]
    return found[0] if len(found) == 1 else None


def _unquoted(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if quoted else text


def _says_where_from(headers: Headers) -> bool:
    return "origin" in headers or "sec-fetch-site" in headers

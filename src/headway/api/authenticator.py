"""Finds out who sent a request, by the token that it shows.

A server whose state directory never had an account is open: everybody who can connect is `local`.
From the first account on nobody is let in without a token, on loopback too, and that stays so when
all accounts are gone.

What the store knows of a token is kept for a few seconds, so that a request costs no look at it. A
change of accounts forgets it at once: in this process by a call, in others by a doorbell.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import Scope

from headway.access.accounts import NAME_PATTERN, Grant, TokenKind
from headway.access.identity import DEFAULT_WORKSPACE, LOCAL, Identity, Via
from headway.access.throttle import FailureThrottle
from headway.access.tokens import parse
from headway.api.problems import Refusal
from headway.core.clock import Clock, ns_from_s
from headway.store.accounts import AccountStore

WORKSPACE_HEADER = "headway-workspace"
WORKSPACE_PARAMETER = "workspace"
KNOWN_KEY = "headway.known"
"""Where in the scope stands who the caller is, in no workspace: also of one who is refused."""
WORKSPACES_KEY = "headway.workspaces"
"""Where in the scope the caller's workspaces stand, with its roles there."""
SESSION_IDLE_S = 12 * 3600.0
"""Uses are noted once a minute, so that a session is over up to a minute early, never late."""
KEPT_S = 5.0
"""How long a change made by another process may go unseen when its doorbell was lost."""
_OPEN_LOOK_S = 2.0
_MAX_KEPT = 10_000
_NAME = re.compile(NAME_PATTERN)
_CHALLENGE = {"www-authenticate": 'Bearer realm="headway"'}

_KINDS: dict[Via, frozenset[TokenKind]] = {
    "token": frozenset({TokenKind.PERSONAL, TokenKind.SERVICE, TokenKind.METRICS}),
    "session": frozenset({TokenKind.SESSION}),
}


@dataclass(frozen=True)
class Shown:
    """A token as it came with a request, and how.

    Attributes:
        workspace: The one to be in when no other is asked for, if the token is good there.
    """

    text: str = field(repr=False)
    via: Via
    workspace: str | None = None


Extract = Callable[[Headers, Scope], Shown | None]
"""Finds a token in a request's headers. None: there is none of this sort."""


def bearer(headers: Headers, scope: Scope) -> Shown | None:
    """The token of an Authorization header; anything else in that header is a wrong token."""
    values = headers.getlist("authorization")
    if not values:
        return None
    scheme, _, text = values[0].partition(" ")
    if len(values) > 1 or scheme.lower() != "bearer":
        return Shown("", "token")
    return Shown(text.strip(" "), "token")


@dataclass(frozen=True, slots=True)
class _Kept:
    grant: Grant
    until_ns: int
    epoch: int


class TokenAuthenticator:
    """Implements `headway.api.identity.Authenticator` over stored accounts.

    Args:
        accounts: Has the tokens.
        clock: Decides about expiry and about how long an answer of the store is kept.
        throttle: Slows down who shows wrong tokens.
        extracts: Where tokens are looked for, in this order.
    """

    def __init__(
        self,
        accounts: AccountStore,
        clock: Clock,
        throttle: FailureThrottle | None = None,
        extracts: Sequence[Extract] = (bearer,),
    ) -> None:
        self._accounts = accounts
        self._clock = clock
        self._throttle = throttle or FailureThrottle()
        self._extracts = tuple(extracts)
        self._closed = False
        self._open_until_ns = 0
        self._epoch = 0
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._used: dict[str, datetime] = {}

    def forget(self) -> None:
        """Ask the store anew: accounts were changed."""
        self._epoch += 1
        self._open_until_ns = 0

    def take_used(self) -> dict[str, datetime]:
        """The tokens used since the last call, to be noted in the store."""
        used, self._used = self._used, {}
        return used

    async def identify(self, scope: Scope) -> Identity:
        headers = Headers(scope=scope)
        wish = _wish(headers, scope)
        if await self._is_open():
            return _in_workspace(LOCAL, wish)
        shown = self._shown(headers, scope)
        if shown is None:
            raise Refusal(
                401, "this server asks for an access token: `headway login URL`", headers=_CHALLENGE
            )
        address = address_of(scope)
        grant = await self._grant(shown, address)
        scope[WORKSPACES_KEY] = grant.workspaces
        scope[KNOWN_KEY] = grant.identity("", shown.via)
        if wish is None and shown.workspace in grant.workspaces:
            wish = shown.workspace
        return replace(_identity(grant, shown.via, wish), address=address)

    async def _is_open(self) -> bool:
        if self._closed:
            return False
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._open_until_ns:
            self._closed = await self._accounts.exist()
            self._open_until_ns = now_ns + ns_from_s(_OPEN_LOOK_S)
        return not self._closed

    def _shown(self, headers: Headers, scope: Scope) -> Shown | None:
        found = (extract(headers, scope) for extract in self._extracts)
        return next((shown for shown in found if shown is not None), None)

    async def _grant(self, shown: Shown, address: str) -> Grant:
        """What the shown token is good for.

        Raises:
            Refusal: 401; for nothing. 429; and its address has shown too many such.
        """
        presented = parse(shown.text)
        kept = None if presented is None else self._kept.get(presented.id)
        if presented is None or (kept and not presented.matches(kept.grant.secret_hash)):
            raise self._wrong(address)
        if kept is None:
            # Only a token that was good before is looked up for an address that guesses.
            self._check_throttle(address)
        grant = await self._read(presented.id, kept)
        if grant is None or not presented.matches(grant.secret_hash):
            raise self._wrong(address)
        self._check_usable(grant, shown.via)
        return grant

    def check_address(self, address: str) -> None:
        """Ask before a token is tried in another way than with a request.

        Raises:
            Refusal: 429; too many wrong ones came from this address.
        """
        self._check_throttle(address)

    def note_failure(self, address: str) -> None:
        """Count a wrong token that was shown in another way."""
        self._throttle.failed(address, self._clock.monotonic_ns())

    async def _read(self, token_id: str, kept: _Kept | None) -> Grant | None:
        now_ns, epoch = self._clock.monotonic_ns(), self._epoch
        if kept is not None and kept.epoch == epoch and now_ns < kept.until_ns:
            return kept.grant
        grant = await self._accounts.grant(token_id)
        self._kept.pop(token_id, None)
        if grant is not None:
            self._kept[token_id] = _Kept(grant, now_ns + ns_from_s(KEPT_S), epoch)
            self._used[token_id] = self._clock.now()
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return grant

    def _check_usable(self, grant: Grant, via: Via) -> None:
        token = grant.token
        if token.kind not in _KINDS[via]:
            raise Refusal(401, "this token is not for this use", headers=_CHALLENGE)
        if token.revoked_at is not None:
            raise Refusal(401, f"the token {token.id} was revoked", headers=_CHALLENGE)
        if not token.is_live(self._clock.now()):
            raise Refusal(401, f"the token {token.id} has expired", headers=_CHALLENGE)
        if via == "session":
            idle = self._clock.now() - (token.last_used_at or token.created_at)
            if idle.total_seconds() > SESSION_IDLE_S:
                raise Refusal(401, "the session was not used for too long", headers=_CHALLENGE)

    def _wrong(self, address: str) -> Refusal:
        self._check_throttle(address)
        self._throttle.failed(address, self._clock.monotonic_ns())
        return Refusal(401, "the access token is not one of this server's", headers=_CHALLENGE)

    def _check_throttle(self, address: str) -> None:
        wait_s = self._throttle.wait_s(address, self._clock.monotonic_ns())
        if wait_s > 0:
            raise Refusal(
                429,
                "too many wrong access tokens came from this address; try again later",
                headers={"retry-after": str(math.ceil(wait_s))},
            )


def address_of(scope: Scope) -> str:
    """The client's address, as far as the server in front knows it."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _wish(headers: Headers, scope: Scope) -> str | None:
    """The workspace that the client asks for: in the path, a header, or the query of a page."""
    named: str | None = scope.get("path_params", {}).get(WORKSPACE_PARAMETER)
    wish = named or headers.get(WORKSPACE_HEADER)
    if wish is None and b"workspace=" in scope["query_string"]:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        wish = query.get(WORKSPACE_PARAMETER, [None])[0]
    return wish or None


def _in_workspace(identity: Identity, wish: str | None) -> Identity:
    if wish not in (None, identity.workspace):
        raise unknown_workspace(wish or "")
    return identity


def _identity(grant: Grant, via: Via, wish: str | None) -> Identity:
    workspaces = grant.workspaces
    if wish is not None:
        if wish not in workspaces:
            raise unknown_workspace(wish)
        return grant.identity(wish, via)
    if len(workspaces) == 1:
        return grant.identity(next(iter(workspaces)), via)
    if DEFAULT_WORKSPACE in workspaces:
        return grant.identity(DEFAULT_WORKSPACE, via)
    # A page shows some workspace, and a menu of the others; a script must say which it means.
    return grant.identity(min(workspaces, default="") if via == "session" else "", via)


def unknown_workspace(name: str) -> Refusal:
    """The answer to who is not in a workspace, whether there is one or not."""
    shown = name if _NAME.fullmatch(name) else "of that name"
    return Refusal(404, f"there is no workspace {shown}")

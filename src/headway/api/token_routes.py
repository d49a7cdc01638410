"""Routes that issue, list and revoke access tokens."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from headway.access import accounts as values
from headway.access.accounts import TokenKind
from headway.access.identity import Identity
from headway.access.roles import Role
from headway.access.tokens import mint
from headway.api.account_changes import act_by, done
from headway.api.account_routes import Name
from headway.api.account_views import token_view
from headway.api.entrance import Entrance
from headway.api.identity import Caller
from headway.api.problems import Refusal, problem_answers
from headway.client.account_models import (
    IssuedToken,
    NewServiceToken,
    NewToken,
    TokenList,
)
from headway.core.clock import Clock

TokenId = Annotated[str, Path(max_length=12, pattern=r"^[0-9a-z]{1,12}$")]
_OWN = (TokenKind.PERSONAL, TokenKind.SESSION)
_GONE: dict[int | str, dict[str, Any]] = {204: {"description": "It is revoked."}}


class TokenRoutes:
    """`/v1/tokens` for users' own, `/v1/workspaces/{workspace}/tokens` for service tokens.

    Args:
        entrance: Has the accounts, and has to be told when they change.
        clock: Expiry counts from now.
    """

    def __init__(self, entrance: Entrance, clock: Clock) -> None:
        self._entrance = entrance
        self._accounts = entrance.accounts
        self._clock = clock

    def router(self) -> APIRouter:
        router = APIRouter(tags=["accounts"])
        answers = problem_answers(400, 401, 403, 404, 409, 422, 429, 503)
        gone = {**_GONE, **answers}
        for path, list_them, issue, revoke in (
            ("/v1/tokens", self.tokens, self.issue, self.revoke),
            (
                "/v1/workspaces/{workspace}/tokens",
                self.service_tokens,
                self.issue_service_token,
                self.revoke_service_token,
            ),
        ):
            router.add_api_route(path, list_them, response_model=TokenList, responses=answers)
            router.add_api_route(
                path, issue, methods=["POST"], status_code=201, response_model=IssuedToken,
                responses=answers,
            )  # fmt: skip
            router.add_api_route(
                f"{path}/{{token}}", revoke, methods=["DELETE"], status_code=204,
                response_class=Response, responses=gone,
            )  # fmt: skip
        return router

    async def tokens(
        self, caller: Caller, everybody: Annotated[bool, Query(alias="all")] = False
    ) -> TokenList:
        """Your tokens and browser sessions; for administrators with `all` those of everybody."""
        if not everybody:
            return await self._list(_OWN, user=caller.user)
        if not caller.administrator:
            raise Refusal(403, "only administrators of this server may list everybody's tokens")
        return await self._list(list(TokenKind))

    async def issue(self, request: Request, caller: Caller, body: NewToken) -> IssuedToken:
        """A new token for yourself, or by an administrator for somebody else.

        It can do no more and lives no longer than the token that it is made with.
        """
        act = act_by(caller, request)
        kind = TokenKind.METRICS if body.metrics else TokenKind.PERSONAL
        user = None if body.metrics else body.user or caller.user
        foreign = body.metrics or user != caller.user
        if foreign and not caller.administrator:
            raise Refusal(403, "only administrators of this server may issue others' tokens")
        own = await self._own_token(caller)
        if own.user is None or _is_limited(own):
            raise Refusal(403, "a limited token cannot issue tokens")
        if user is not None and await self._accounts.user(user) is None:
            raise Refusal(404, f"there is no user {user}")
        expires_at = self._expiry(body.expires_in_s, None if foreign else own.expires_at)
        role = None if body.role is None else Role(body.role)
        return await self._issue(
            kind, body.label, act, user=user, workspace=body.workspace, role=role,
            expires_at=expires_at,
        )  # fmt: skip

    async def revoke(self, request: Request, caller: Caller, token: TokenId) -> Response:
        """Revoke one of your tokens or sessions; an administrator may revoke any.

        A limited token revokes itself and what began with it: whoever finds one must not be able
        to shut its owner out.
        """
        found = await self._accounts.token(token)
        own = found is not None and found.user == caller.user
        if found is None or not (own or caller.administrator):
            raise Refusal(404, f"there is no token {token}")
        shown = await self._own_token(caller)
        if _is_limited(shown) and shown.id not in (found.id, found.parent):
            raise Refusal(403, "a limited token revokes itself and no other token")
        return await self._revoke(found, act_by(caller, request))

    async def service_tokens(self, caller: Caller, workspace: Name) -> TokenList:
        """The workspace's service tokens."""
        return await self._list([TokenKind.SERVICE], workspace=workspace)

    async def issue_service_token(
        self, request: Request, caller: Caller, workspace: Name, body: NewServiceToken
    ) -> IssuedToken:
        """A new service token; it belongs to the workspace, not to you."""
        act = act_by(caller, request)
        own = await self._own_token(caller)
        return await self._issue(
            TokenKind.SERVICE, body.label, act, workspace=workspace, role=Role(body.role),
            expires_at=self._expiry(body.expires_in_s, own.expires_at),
        )  # fmt: skip

    async def revoke_service_token(
        self, request: Request, caller: Caller, workspace: Name, token: TokenId
    ) -> Response:
        """Revoke a service token at once."""
        found = await self._accounts.token(token)
        here = found is not None and found.workspace == workspace
        if found is None or not here or found.kind is not TokenKind.SERVICE:
            raise Refusal(404, f"there is no service token {token} in {workspace}")
        return await self._revoke(found, act_by(caller, request))

    async def _list(
        self, kinds: Sequence[TokenKind], *, user: str | None = None, workspace: str | None = None
    ) -> TokenList:
        # Uses are collected for a minute; a token that was just used would be shown as never used.
        await self._entrance.note_use()
        found = await self._accounts.tokens(kinds, user=user, workspace=workspace)
        return TokenList(tokens=[token_view(token) for token in found])

    async def _own_token(self, caller: Identity) -> values.Token:
        token = None if caller.token_id is None else await self._accounts.token(caller.token_id)
        if token is None:
            raise Refusal(403, "only who has shown a token can issue tokens")
        return token

    def _expiry(self, in_s: float | None, limit: datetime | None) -> datetime | None:
        asked = None if in_s is None else self._clock.now() + timedelta(seconds=in_s)
        return min((each for each in (asked, limit) if each is not None), default=None)

    async def _issue(
        self,
        kind: TokenKind,
        label: str,
        act: values.Act,
        *,
        user: str | None = None,
        workspace: str | None = None,
        role: Role | None = None,
        expires_at: datetime | None = None,
    ) -> IssuedToken:
        minted = mint()
        new = values.NewToken(
            id=minted.id, secret_hash=minted.secret_hash, kind=kind, label=label, user=user,
            workspace=workspace, role=role, expires_at=expires_at,
        )  # fmt: skip
        stored = await self._accounts.add_token(new, act)
        return IssuedToken(token=minted.text, about=token_view(stored))

    async def _revoke(self, token: values.Token, act: values.Act) -> Response:
        done(await self._accounts.revoke_token(token.id, act))
        self._entrance.changed()
        return Response(status_code=204)


def _is_limited(token: values.Token) -> bool:
    """Whether it can do less than its user."""
    return token.workspace is not None or token.role is not None

"""An OpenID provider as this server uses it: the authorization code flow with PKCE.

What it says is believed only with its signature, for this server, for this login, and in time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
from cryptography.fernet import Fernet, InvalidToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from headway.api.oidc_settings import OidcSettings
from headway.core.clock import Clock, ns_from_s

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Signatures with a public key. `none`, and those with a shared secret, prove nothing."""
LOGIN_S = 600
"""How long somebody may take at the provider."""
_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_KEPT_S = 3600.0
_AGAIN_S = 60.0
_LEEWAY_S = 60
_MAX_BYTES = 1024 * 1024
Claims = Mapping[str, Any]


class LoginFailed(Exception):
    """Somebody could not be signed in; the text says why, without a secret."""


@dataclass(frozen=True)
class Login:
    """A login that has begun.

    Attributes:
        address: Where the browser goes.
        ticket: What it brings back in a cookie: sealed, so that nothing of it is kept here.
    """

    address: str
    ticket: str


@dataclass(frozen=True)
class Arrival:
    """Who came back: what the provider says of it, and where to go on."""

    claims: Claims
    next_path: str


class OidcClient:
    """One provider.

    Args:
        settings: Which, and who this server is there.
        clock: Says when its description and keys are asked for anew.
    """

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        self._settings = settings
        self._secret = settings.client_secret()
        self._clock = clock
        self._trust = httpx.create_ssl_context()  # once: it takes long enough to be noticed
        self._seal = Fernet(Fernet.generate_key())  # a restart ends the logins that are on the way
        self._described: dict[str, Any] | None = None
        self._described_ns = 0
        self._keys: KeySet | None = None
        self._keys_ns = 0

    async def begin(self, redirect_uri: str, next_path: str) -> Login:
        """Send somebody to the provider.

        Raises:
            LoginFailed: it does not answer.
        """
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        digest = hashlib.sha256(verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(("openid", *self._settings.scopes)),
            "state": state,
            "nonce": nonce,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        address = self._endpoint(await self._description(), "authorization_endpoint")
        joint = "&" if urlsplit(address).query else "?"
        sealed = json.dumps(
            {"state": state, "nonce": nonce, "verifier": verifier, "uri": redirect_uri,
             "next": next_path}
        )  # fmt: skip
        ticket = self._seal.encrypt(sealed.encode()).decode()
        return Login(f"{address}{joint}{urlencode(query)}", ticket)

    async def finish(self, ticket: str, answer: Mapping[str, str]) -> Arrival:
        """Take somebody back from the provider.

        Args:
            ticket: The browser's cookie.
            answer: The query with which it came.

        Raises:
            LoginFailed: it was not this browser that began, it took too long, the provider
                refused, or what it says cannot be believed.
        """
        begun = self._opened(ticket)
        # As bytes: of texts it compares ASCII only.
        state = answer.get("state", "").encode("utf-8", "surrogatepass")
        if not secrets.compare_digest(begun["state"].encode(), state):
            raise LoginFailed("this answer belongs to another login")
        if "error" in answer:
            raise LoginFailed(f"the provider refused: {_short(answer['error'])}")
        issuer = answer.get("iss", self._settings.issuer)
        if issuer != self._settings.issuer or "code" not in answer:
            raise LoginFailed("this is no answer of the provider")
        described = await self._description()
        tokens = await self._tokens(described, answer["code"], begun)
        id_token = tokens.get("id_token")
        if not isinstance(id_token, str):
            raise LoginFailed("the provider sent no id_token")
        claims = await self._verified(described, id_token, begun["nonce"])
        return Arrival(await self._completed(described, claims, tokens), begun["next"])

    def _opened(self, ticket: str) -> dict[str, str]:
        try:
            opened: dict[str, str] = json.loads(self._seal.decrypt(ticket.encode(), ttl=LOGIN_S))
        except InvalidToken:
            raise LoginFailed(
                "this login was not begun in this browser, or more than 10 minutes ago"
            ) from None
        return opened

    async def _tokens(
        self, described: Claims, code: str, begun: Mapping[str, str]
    ) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": begun["uri"],
            "code_verifier": begun["verifier"],
            "client_id": self._settings.client_id,
        }
        auth = None
        if self._secret is not None:
            methods = described.get("token_endpoint_auth_methods_supported", [])
            if "client_secret_post" in methods and "client_secret_basic" not in methods:
                form["client_secret"] = self._secret
            else:
                auth = httpx.BasicAuth(self._settings.client_id, self._secret)
        endpoint = self._endpoint(described, "token_endpoint")
        return await self._asked(httpx.Request("POST", endpoint, data=form), auth)

    async def _verified(self, described: Claims, id_token: str, nonce: str) -> Claims:
        try:
            token = jwt.decode(id_token, await self._key_set(described), algorithms=ALGORITHMS)
        except (JoseError, ValueError):
            # Keys are changed now and then; a wrong token asks for them once a minute at most.
            keys = await self._key_set(described, anew=True)
            try:
                token = jwt.decode(id_token, keys, algorithms=ALGORITHMS)
            except (JoseError, ValueError) as error:
                raise LoginFailed("the id_token has no signature of the provider's") from error
        check_claims(token.claims, self._settings, nonce, int(self._clock.now().timestamp()))
        return token.claims

    async def _completed(
        self, described: Claims, claims: Claims, tokens: Mapping[str, Any]
    ) -> Claims:
        """The claims, with those that the provider tells only when asked."""
        wanted = {self._settings.user_claim, self._settings.groups_claim}
        access = tokens.get("access_token")
        if wanted <= claims.keys() or "userinfo_endpoint" not in described:
            return claims
        endpoint = self._endpoint(described, "userinfo_endpoint")
        headers = {"authorization": f"Bearer {access}"}
        more = await self._asked(httpx.Request("GET", endpoint, headers=headers))
        if more.get("sub") != claims["sub"]:
            raise LoginFailed("the provider spoke of somebody else")
        return {**more, **claims}

    async def _description(self) -> dict[str, Any]:
        now_ns = self._clock.monotonic_ns()
        if self._described is None or now_ns - self._described_ns > ns_from_s(_KEPT_S):
            issuer = self._settings.issuer
            address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
            described = await self._asked(httpx.Request("GET", address))
            if described.get("issuer") != issuer:
                raise LoginFailed(f"the provider calls itself {_short(described.get('issuer'))}")
            self._described, self._described_ns = described, now_ns
        return self._described

    async def _key_set(self, described: Claims, *, anew: bool = False) -> KeySet:
        now_ns = self._clock.monotonic_ns()
        kept_s = _AGAIN_S if anew else _KEPT_S
        if self._keys is None or now_ns - self._keys_ns > ns_from_s(kept_s):
            address = self._endpoint(described, "jwks_uri")
            keys = await self._asked(httpx.Request("GET", address))
            try:
                self._keys = KeySet.import_key_set({"keys": keys.get("keys", [])})
            except (JoseError, ValueError, KeyError) as error:
                raise LoginFailed("the provider's keys cannot be read") from error
            self._keys_ns = now_ns
        return self._keys

    async def _asked(
        self, request: httpx.Request, auth: httpx.Auth | None = None
    ) -> dict[str, Any]:
        try:
            async with httpx.AsyncClient(verify=self._trust, timeout=_TIMEOUT) as http:
                answer = await http.send(request, auth=auth)
        except httpx.HTTPError as error:
            raise LoginFailed(f"the provider does not answer: {type(error).__name__}") from error
        if answer.status_code != 200 or len(answer.content) > _MAX_BYTES:
            raise LoginFailed(f"the provider answered HTTP {answer.status_code}")
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise LoginFailed("the provider's answer cannot be read")
        return content

    def _endpoint(self, described: Claims, name: str) -> str:
        address = described.get(name)
        secure = self._settings.issuer.startswith("https://")
        if not isinstance(address, str) or (secure and not address.startswith("https://")):
            raise LoginFailed(f"the provider has no {name}")
        return address


def check_claims(claims: Claims, settings: OidcSettings, nonce: str, now_s: int) -> None:
    """What OpenID Connect Core 3.1.3.7 asks for, beside the signature.

    Raises:
        LoginFailed: it is not met.
    """
    registry = jwt.JWTClaimsRegistry(
        now=now_s,
        leeway=_LEEWAY_S,
        iss={"essential": True, "value": settings.issuer},
        sub={"essential": True},
        aud={"essential": True, "value": settings.client_id},
        exp={"essential": True},
        iat={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        registry.validate(dict(claims))
    except JoseError as error:
        raise LoginFailed(f"the id_token is not for this login: {error.error}") from error
    audience = claims["aud"]
    several = isinstance(audience, list) and len(audience) > 1
    if (several or "azp" in claims) and claims.get("azp") != settings.client_id:
        raise LoginFailed("the id_token was made for another program")


def _short(value: object) -> str:
    return repr(value)[:100]

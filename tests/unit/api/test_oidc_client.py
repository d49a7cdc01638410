"""N5: what an OpenID provider says is believed only when it is its own, for us, now."""

from __future__ import annotations

import base64
import hmac
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("joserfc", reason="needs headway[oidc]")

from joserfc import jwt
from joserfc.jwk import RSAKey

from headway.access.roles import Role
from headway.api.oidc_client import LoginFailed, OidcClient
from headway.api.oidc_settings import GroupRole, OidcSettings
from headway.core.clock import SystemClock

RING = [GroupRole(group="gpu", workspace="blue", role=Role.USER)]
REDIRECT = "https://bench.example/login/oidc/callback"


class Provider:
    """A provider over real HTTP that signs whatever a test wants it to say."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.sign_with: Any = self.key
        self.asked: list[dict[str, list[str]]] = []
        self.described: dict[str, Any] = {}
        self.raw_token: str | None = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._send(provider.get(self.path))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                form = parse_qs(body)
                form["authorization"] = [self.headers.get("authorization", "")]
                provider.asked.append(form)
                self._send(provider.token())

            def _send(self, content: Any) -> None:
                body = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def get(self, path: str) -> Any:
        if path == "/jwks":
            return {"keys": [self.key.as_dict(private=False)]}
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            **self.described,
        }

    def token(self) -> Any:
        token = self.raw_token or jwt.encode(
            self.header, self.claims, self.sign_with, algorithms=["RS256", "HS256"]
        )
        return {"access_token": "a", "token_type": "Bearer", "id_token": token}

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    running = Provider()
    yield running
    running.stop()


def settings_for(provider: Provider) -> OidcSettings:
    return OidcSettings(
        issuer=provider.issuer, client_id="headway", groups=tuple(RING), administrators=()
    )


async def test_the_answer_to_this_login_is_believed_and_no_other(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_OIDC_CLIENT_SECRET", "sesame")
    clock = SystemClock()
    client = OidcClient(settings_for(provider), clock)
    login = await client.begin(REDIRECT, "/jobs/01")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(login.address).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"] == REDIRECT
    assert asked["tenant"] == "1"
    assert asked["nonce"] not in login.ticket
    now_s = int(clock.now().timestamp())
    good = {
        "iss": provider.issuer, "sub": "7", "aud": "headway", "nonce": asked["nonce"],
        "iat": now_s, "exp": now_s + 60, "email": "ada@example.org", "groups": ["gpu"],
    }  # fmt: skip
    answer = {"state": asked["state"], "code": "c"}
    provider.claims = good
    arrival = await client.finish(login.ticket, answer)
    assert arrival.claims["email"] == "ada@example.org"
    assert arrival.next_path == "/jobs/01"
    sent = provider.asked[-1]
    assert len(sent["code_verifier"][0]) >= 43
    assert sent["authorization"] == ["Basic " + base64.b64encode(b"headway:sesame").decode()]

    for change in {
        "another login's": {"nonce": "other"},
        "no login's": {"nonce": None},
        "another program's": {"aud": "other"},
        "several programs'": {"aud": ["headway", "other"]},
        "made for another": {"azp": "other"},
        "another provider's": {"iss": "https://evil.example"},
        "expired": {"exp": now_s - 3600},
        "for ever": {"exp": None},
        "from the future": {"iat": now_s + 3600},
        "nobody's": {"sub": None},
    }.values():
        provider.claims = {k: v for k, v in {**good, **change}.items() if v is not None}
        with pytest.raises(LoginFailed, match="id_token"):
            await client.finish(login.ticket, answer)

    provider.claims = good
    for state in ("", "other", asked["state"] + "x"):
        with pytest.raises(LoginFailed, match="another login"):
            await client.finish(login.ticket, {"state": state, "code": "c"})
    with pytest.raises(LoginFailed, match="no answer"):
        await client.finish(login.ticket, {**answer, "iss": "https://evil.example"})
    for ticket in (
        "",
        "x",
        OidcClient(settings_for(provider), clock)._seal.encrypt(b"{}").decode(),
    ):
        with pytest.raises(LoginFailed, match="not begun in this browser"):
            await client.finish(ticket, answer)


async def test_a_signature_that_is_not_the_providers_is_refused(provider: Provider) -> None:
    clock = SystemClock()
    client = OidcClient(settings_for(provider), clock)
    login = await client.begin(REDIRECT, "/jobs")
    query = parse_qs(urlsplit(login.address).query)
    answer = {"state": query["state"][0], "code": "c"}
    now_s = int(clock.now().timestamp())
    claims = {
        "iss": provider.issuer, "sub": "7", "aud": "headway", "nonce": query["nonce"][0],
        "iat": now_s, "exp": now_s + 60,
    }  # fmt: skip
    provider.claims = claims
    stranger = RSAKey.generate_key(2048, {"kid": "one"})
    unsigned = f"{_part({'alg': 'none', 'kid': 'one'})}.{_part(claims)}"
    # Signed with what everybody knows: the public key, taken for a shared secret.
    shared = f"{_part({'alg': 'HS256', 'kid': 'one'})}.{_part(claims)}"
    public = provider.key.as_pem(private=False)
    mac = base64.urlsafe_b64encode(hmac.digest(public, shared.encode(), "sha256"))
    key, header = provider.key, provider.header
    for sign_with, sent_header, raw in (
        (stranger, header, None),
        (key, {"alg": "RS256", "kid": "unknown"}, None),
        (key, header, f"{shared}.{mac.rstrip(b'=').decode()}"),
        (key, header, f"{unsigned}."),
        (key, header, "x.y.z"),
        (key, header, "x"),
    ):
        provider.sign_with, provider.header, provider.raw_token = sign_with, sent_header, raw
        with pytest.raises(LoginFailed, match="signature"):
            await client.finish(login.ticket, answer)
    provider.sign_with, provider.header, provider.raw_token = key, header, None
    assert (await client.finish(login.ticket, answer)).claims["sub"] == "7"


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


async def test_a_provider_that_is_another_or_away_signs_nobody_in(provider: Provider) -> None:
    settings, clock = settings_for(provider), SystemClock()
    provider.described = {"issuer": "https://evil.example"}
    with pytest.raises(LoginFailed, match="calls itself"):
        await OidcClient(settings, clock).begin(REDIRECT, "/jobs")
    gone = settings.model_copy(update={"issuer": "http://127.0.0.1:9"})
    with pytest.raises(LoginFailed, match="does not answer"):
        await OidcClient(gone, clock).begin(REDIRECT, "/jobs")
    for wrong in ("http://bench.example", "https://user@a", "https://a?b"):
        with pytest.raises(ValueError, match="issuer"):
            OidcSettings(issuer=wrong, client_id="x", groups=tuple(RING))

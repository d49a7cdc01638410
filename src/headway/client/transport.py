"""What both clients need of httpx: requests from calls, replies from responses, and limits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from headway import __version__
from headway.client.asking import Ask, performing
from headway.client.authority import CACERT_VARIABLE, trusted_authorities
from headway.client.credentials import Credentials
from headway.client.flows import Flows
from headway.client.following import FollowCursor
from headway.client.limits import LimitFlows
from headway.client.provisions import ProvisionFlows
from headway.client.retrying import Retrier, RetryPolicy
from headway.client.steps import Call, Flow, Lost, Reply
from headway.core.clock import Clock, SystemClock

CONNECT_TIMEOUT_S = 5.0
T = TypeVar("T")


class Brain:
    """The deciding half of a client: its flows and its cursors share one policy and one clock."""

    def __init__(self, policy: RetryPolicy, clock: Clock | None = None) -> None:
        self._policy = policy
        self._clock = clock or SystemClock()
        self._retrier = Retrier(policy, self._clock, random.Random())
        self.flows = Flows(self._retrier, self._clock)
        self.provisions = ProvisionFlows(self._retrier.send)
        self.limits = LimitFlows(self._retrier.send)

    def ask(self, ask: Ask[T]) -> Flow[T]:
        return performing(ask, self._retrier)

    def cursor(self, opening: Call) -> FollowCursor:
        return FollowCursor(opening, self._retrier, self._policy, self._clock)


def http_settings(
    server: str, cacert: str | None = None, credentials: Credentials | None = None
) -> dict[str, Any]:
    """How httpx is set up for this server. Certificates are verified, always.

    Loading the certificates of all authorities takes 20 ms to 300 ms. A server on loopback without
    TLS needs none, and no proxy either, which could not reach it.
    """
    parts = urlsplit(server)
    local = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1", "localhost"}
    tls: dict[str, Any] = {"verify": False, "trust_env": False} if local else {}
    if parts.scheme == "https" and (authorities := trusted_authorities(cacert)) is not None:
        tls = {"verify": authorities}
    shown = Credentials() if credentials is None else credentials
    return {"base_url": server, "headers": default_headers() | shown.headers(), **tls}


def default_headers() -> dict[str, str]:
    return {"user-agent": f"headway/{__version__}", "accept": "application/json"}


def partial_file(file: Path) -> Path:
    """Where a download stands until it is whole."""
    return file.with_name(f".{file.name}.partial")


def request_from(call: Call, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
    """The call as a request of this client's server."""
    return http.build_request(
        call.method,
        call.path,
        params=list(call.query) or None,
        headers=dict(call.headers),
        content=call.body,
        timeout=timeout_of(call),
    )


def timeout_of(call: Call) -> httpx.Timeout:
    return httpx.Timeout(call.read_timeout_s, connect=CONNECT_TIMEOUT_S)


def reply_from(response: httpx.Response) -> Reply:
    """A response whose body has been read."""
    return Reply(response.status_code, response.headers, response.content)


def lost_from(error: httpx.TransportError) -> Lost:
    """A connection that did not come about, or broke."""
    url = error.request.url
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    # Which server it was, since that may have come from a variable or a file.
    text += f", at {url.scheme}://{url.netloc.decode()}"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        text += (
            "; the server's certificate is not trusted: if an authority of your own has signed"
            f" it, name its file with --cacert or {CACERT_VARIABLE}"
        )
    return Lost(text)

"""A target as the HTTP backends use it: transport, ready headers, deadlines, no secret shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

import headway
from headway.backends.spec import TargetSpec
from headway.core.errors import ConfigError
from headway.wire.exchange import Exchange, Timeouts, WireRequest
from headway.wire.head import check_head
from headway.wire.options import TransportOptions
from headway.wire.origin import Origin, parse_origin
from headway.wire.redaction import Redactor, SecretHeaders, is_secret_name
from headway.wire.tls import TlsOptions
from headway.wire.transport import open_transport

SECRET_REFERENCE = "secret:"  # noqa: S105 - a word before the name of one
"""Begins a header's value that is the name of a secret."""
_SHORTEST_SECRET = 8
_VERSIONED = re.compile(r"/v\d+[a-z0-9]*$")


class Endpoint:
    """One target over HTTP. Shared by everything that a backend asks of it.

    Args:
        target: The user's description.

    Raises:
        ConfigError: the URL cannot be used or the key cannot be found.
    """

    def __init__(self, target: TargetSpec) -> None:
        self.origin = parse_origin(target.url)
        key = _api_key(target)
        self.redactor = Redactor(_secrets(target, key))
        self.headers = _headers(target, key)
        self.timeouts = _timeouts(target)
        self.transport = open_transport(target.transport, _options(target, self.origin))

    @property
    def api_path(self) -> str:
        """The path prefix of an OpenAI-like API: `/v1` is added where the URL names no version."""
        path = self.origin.path
        return path if _VERSIONED.search(path) else f"{path}/v1"

    @property
    def root_path(self) -> str:
        """The path prefix above the API's version, where servers put what is not of the API."""
        return _VERSIONED.sub("", self.origin.path)

    async def startup(self) -> None:
        """Raises ConfigError when the headers or files cannot be used."""
        check_head("GET", "/", self.headers)
        await self.transport.startup()

    async def shutdown(self) -> None:
        await self.transport.shutdown()

    async def ask(
        self, method: str, path: str, body: bytes = b"", timeouts: Timeouts | None = None
    ) -> Exchange:
        """One exchange outside of the measurement: discovery, token counting."""
        exchange = Exchange()
        request = WireRequest(method, path, self.headers, body)
        await self.transport.exchange(request, exchange, timeouts or self.timeouts)
        return exchange


def _headers(target: TargetSpec, key: str | None) -> Mapping[str, str]:
    fields = {"User-Agent": f"headway/{headway.__version__}", "Content-Type": "application/json"}
    if key:
        fields["Authorization"] = f"Bearer {key}"
    return with_headers(fields, target.headers)


def with_headers(fields: Mapping[str, str], more: Mapping[str, str]) -> SecretHeaders:
    """`fields` with `more` over them; names count without their case."""
    given = {name.lower() for name in more}
    kept = {name: value for name, value in fields.items() if name.lower() not in given}
    return SecretHeaders({**kept, **more})


def _secrets(target: TargetSpec, key: str | None) -> Iterator[str]:
    """What must not show in anything that the target sends back."""
    if key:
        yield key
    hidden = {name.lower() for name in target.hidden_headers}
    for name, value in target.headers.items():
        if name.lower() in hidden or is_secret_name(name):
            yield value
            # `Bearer KEY`: a target repeats the key without the word.
            if len(last := value.rpartition(" ")[2]) >= _SHORTEST_SECRET:
                yield last


def _check_references(target: TargetSpec) -> None:
    """Refuse references to secrets: a server has put the values in their place by now."""
    named = [value for value in target.headers.values() if value.startswith(SECRET_REFERENCE)]
    if named or target.api_key_secret is not None:
        raise ConfigError(
            "secrets by name are kept by a server (--server); here, name the variable or file that "
            "holds the key (--api-key-env, --api-key-file)"
        )


def _api_key(target: TargetSpec) -> str | None:
    _check_references(target)
    if target.api_key_env is not None:
        key = os.environ.get(target.api_key_env, "").strip()
        if not key:
            raise ConfigError(f"the API key's environment variable {target.api_key_env} is not set")
        return key
    if target.api_key_file is None:
        return None
    try:
        key = target.api_key_file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read the API key's file {target.api_key_file}: {error}"
        ) from error
    if not key:
        raise ConfigError(f"the API key's file {target.api_key_file} is empty")
    return key


def _timeouts(target: TargetSpec) -> Timeouts:
    spec = target.timeouts
    return Timeouts(
        connect_s=spec.connect_s,
        first_token_s=spec.first_token_s,
        idle_s=spec.idle_s,
        total_s=spec.total_s,
    )


def _options(target: TargetSpec, origin: Origin) -> TransportOptions:
    tls = target.tls
    return TransportOptions(
        origin=origin,
        tls=TlsOptions(
            verify=tls.verify,
            ca_file=_text(tls.ca_file),
            client_cert=_text(tls.client_cert),
            client_key=_text(tls.client_key),
        ),
        proxy=target.proxy,
        spread_addresses=target.spread_addresses,
        addresses=target.addresses,
    )


def _text(path: os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)

"""Keeping secrets out of everything that is shown or stored."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

_HIDDEN = "***"
_SECRET_NAMES = ("authorization", "cookie", "api-key", "apikey", "token", "secret", "password")


def is_secret_name(name: str) -> bool:
    """Whether a header of this name carries a secret."""
    lowered = name.lower()
    return any(part in lowered for part in _SECRET_NAMES)


def redact_url(url: str) -> str:
    """A URL without the credentials it may carry."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _HIDDEN
    if "@" not in parts.netloc:
        return url
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{_HIDDEN}@{host}").geturl()


class SecretHeaders(dict[str, str]):
    """Request headers whose text form shows no secret, wherever it gets printed or logged."""

    def __repr__(self) -> str:
        return repr({n: _HIDDEN if is_secret_name(n) else v for n, v in self.items()})

    __str__ = __repr__


class Redactor:
    """Takes known secrets out of texts that a target sent back: some echo the key they refuse."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(secret for secret in secrets if secret)

    def redact(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"

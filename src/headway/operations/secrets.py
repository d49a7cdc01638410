"""What a run may not carry to a server: a secret would lie in the job's row for all to read."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from headway.backends.spec import HttpBackendSpec
from headway.core.errors import ConfigError
from headway.load.spec import RunSpec
from headway.wire.redaction import is_secret_name


def check_no_secrets(spec: RunSpec) -> None:
    """Refuse a run that holds a secret itself instead of naming where it is kept.

    Raises:
        ConfigError: naming the field, never its value.
    """
    for field in _secret_fields(spec):
        raise ConfigError(
            f"{field} would keep a secret in the job's row; name where it is kept instead "
            "(--api-key-env or --api-key-file, as the server sees them)"
        )


def _secret_fields(spec: RunSpec) -> Iterator[str]:
    for name in spec.target.headers:
        if is_secret_name(name):
            yield f"the header {name}"
    if isinstance(spec.backend, HttpBackendSpec):
        for name in spec.backend.headers:
            if is_secret_name(name):
                yield f"the backend's header {name}"
    if _has_password(spec.target.url):
        yield "the target's URL"
    if spec.target.proxy is not None and _has_password(spec.target.proxy):
        yield "the proxy's URL"


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:
        return False

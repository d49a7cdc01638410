"""Secrets of a run on a server: named in its row, never written there.

A header's value `secret:NAME` and `api_key_secret` name a secret of the workspace. The value is put
in their place in the job's own process, goes to the load workers over their sockets, and is hidden
in everything that a run keeps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlsplit

from headway.backends.endpoint import SECRET_REFERENCE
from headway.backends.spec import HttpBackendSpec
from headway.core.errors import ConfigError
from headway.load.spec import RunSpec
from headway.wire.redaction import is_secret_name

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")


def check_no_secrets(spec: RunSpec) -> None:
    """Refuse a run that holds a secret itself instead of naming where it is kept.

    Raises:
        ConfigError: naming the field, never its value.
    """
    for field in _secret_fields(spec):
        raise ConfigError(
            f"{field} would keep a secret in the job's row; name it instead (--api-key-secret NAME "
            "or a header's value secret:NAME, as `headway secrets list` shows them)"
        )
    for name in secret_names(spec):
        if not _NAME.match(name):
            raise ConfigError(f"{name!r} is no name of a secret")


def secret_names(spec: RunSpec) -> tuple[str, ...]:
    """The secrets that a run names."""
    values = [*spec.target.headers.values(), *_backend_headers(spec).values()]
    names = [value.removeprefix(SECRET_REFERENCE) for value in values if _is_reference(value)]
    if spec.target.api_key_secret is not None:
        names.append(spec.target.api_key_secret)
    return tuple(dict.fromkeys(names))


def has_key(spec: RunSpec) -> bool:
    """Whether the run says by itself what its API key is."""
    target = spec.target
    names = {name.lower() for name in (*target.headers, *_backend_headers(spec))}
    return (
        bool(target.api_key_secret or target.api_key_env or target.api_key_file)
        or "authorization" in names
    )


def with_values(spec: RunSpec, value_of: Callable[[str], str]) -> RunSpec:
    """The run with the values in the place of the names; only for this attempt's memory.

    Args:
        spec: The run.
        value_of: The value of a secret by its name; raises ConfigError when there is none.
    """
    target, backend = spec.target, spec.backend
    hidden = [
        name
        for headers in (target.headers, _backend_headers(spec))
        for name, value in headers.items()
        if _is_reference(value)
    ]
    headers = _filled(target.headers, value_of)
    if target.api_key_secret is not None:
        headers = {"Authorization": f"Bearer {value_of(target.api_key_secret)}", **headers}
    changes = {"headers": headers, "api_key_secret": None, "hidden_headers": tuple(hidden)}
    if isinstance(backend, HttpBackendSpec):
        filled = _filled(backend.headers, value_of)
        backend = backend.model_copy(update={"headers": filled})
    return spec.model_copy(update={"target": target.model_copy(update=changes), "backend": backend})


def _filled(headers: Mapping[str, str], value_of: Callable[[str], str]) -> dict[str, str]:
    return {
        name: value_of(value.removeprefix(SECRET_REFERENCE)) if _is_reference(value) else value
        for name, value in headers.items()
    }


def _is_reference(value: str) -> bool:
    return value.startswith(SECRET_REFERENCE)


def _backend_headers(spec: RunSpec) -> Mapping[str, str]:
    return spec.backend.headers if isinstance(spec.backend, HttpBackendSpec) else {}


def _secret_fields(spec: RunSpec) -> Iterator[str]:
    for name, value in spec.target.headers.items():
        if is_secret_name(name) and not _is_reference(value):
            yield f"the header {name}"
    for name, value in _backend_headers(spec).items():
        if is_secret_name(name) and not _is_reference(value):
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

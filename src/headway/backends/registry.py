"""Makes the backend that a description names; each is imported only when it is used."""

from __future__ import annotations

from headway.backends.backend import Backend
from headway.backends.spec import BackendSpec, NullBackendSpec, OpenAIBackendSpec, TargetSpec
from headway.core.errors import ConfigError


def create_backend(backend: BackendSpec, target: TargetSpec) -> Backend:
    """A backend, not started yet.

    Raises:
        ConfigError: the URL cannot be used or the API key cannot be found.
    """
    if isinstance(backend, OpenAIBackendSpec):
        return _openai(backend, target)
    if isinstance(backend, NullBackendSpec):
        from headway.backends.null import NullBackend

        return NullBackend(backend)
    raise ConfigError(f"backend {backend.kind} is not there yet")


def _openai(spec: OpenAIBackendSpec, target: TargetSpec) -> Backend:
    from headway.backends.endpoint import Endpoint
    from headway.backends.openai import OpenAIBackend
    from headway.backends.openai_chat import ChatDialect

    return OpenAIBackend(spec, ChatDialect(), Endpoint(target), target.model)

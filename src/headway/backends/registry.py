"""Makes the backend that a description names; each is imported only when it is used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headway.backends.backend import Backend
from headway.backends.spec import (
    BackendSpec,
    HeadwayJobsBackendSpec,
    HttpBackendSpec,
    NullBackendSpec,
    OpenAIBackendSpec,
    PluginBackendSpec,
    PythonBackendSpec,
    TargetSpec,
)

if TYPE_CHECKING:
    from headway.backends.openai import OpenAIBackend

_DIALECTS = {
    "openai-chat": ("headway.backends.openai_chat", "ChatDialect"),
    "openai-completions": ("headway.backends.openai_completions", "CompletionsDialect"),
    "openai-responses": ("headway.backends.openai_responses", "ResponsesDialect"),
    "openai-embeddings": ("headway.backends.openai_embeddings", "EmbeddingsDialect"),
}


def create_backend(backend: BackendSpec, target: TargetSpec) -> Backend:
    """A backend, not started yet.

    Raises:
        ConfigError: the URL cannot be used or the API key cannot be found.
    """
    match backend:
        case OpenAIBackendSpec():
            return create_openai(backend, target)
        case HttpBackendSpec():
            from headway.backends.endpoint import Endpoint
            from headway.backends.http import HttpBackend

            return HttpBackend(backend, Endpoint(target))
        case PythonBackendSpec():
            from headway.backends.python import PythonBackend

            return PythonBackend(backend, target.timeouts)
        case NullBackendSpec():
            from headway.backends.null import NullBackend

            return NullBackend(backend)
        case HeadwayJobsBackendSpec():
            from headway.backends.endpoint import Endpoint
            from headway.backends.headway_jobs import HeadwayJobsBackend

            return HeadwayJobsBackend(backend, Endpoint(target))
        case PluginBackendSpec():
            from headway.core.plugins import make_plugin

            made: Backend = make_plugin(
                "headway.backends", backend.name, options=backend.options, target=target
            )
            return made


def create_openai(spec: OpenAIBackendSpec, target: TargetSpec) -> OpenAIBackend:
    """A backend of the OpenAI family, not started yet."""
    from headway.backends.endpoint import Endpoint
    from headway.backends.openai import OpenAIBackend

    module, name = _DIALECTS[spec.kind]
    dialect = getattr(import_module(module), name)()
    return OpenAIBackend(spec, dialect, Endpoint(target), target.model)

"""How to reach a target and which protocol to speak with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from headway.core.spec import SpecModel


class TlsSpec(SpecModel):
    """TLS towards the target. The certificate is verified unless `verify` says otherwise."""

    verify: bool = True
    ca_file: Path | None = None
    client_cert: Path | None = None
    client_key: Path | None = None


class TimeoutSpec(SpecModel):
    """Deadlines of each request, in seconds. None switches one off; `total_s` always holds."""

    connect_s: float | None = Field(default=10.0, gt=0)
    first_token_s: float | None = Field(default=None, gt=0)
    idle_s: float | None = Field(default=None, gt=0)
    total_s: float = Field(default=600.0, gt=0)


class TargetSpec(SpecModel):
    """What is measured."""

    url: str
    """`http://host:port`, with or without the API's path prefix (`/v1` is added where absent)."""
    model: str | None = None
    """None: the first model that the target lists."""
    headers: dict[str, str] = Field(default_factory=dict)
    api_key_env: str | None = None
    """Name of the environment variable that holds the key."""
    api_key_file: Path | None = None
    api_key_secret: str | None = Field(default=None, max_length=100)
    """Name of the secret of the server's workspace that is the key."""
    hidden_headers: tuple[str, ...] = ()
    """Headers whose values are secrets whatever they are called; nothing shows them."""
    tls: TlsSpec = TlsSpec()
    proxy: str | None = None
    timeouts: TimeoutSpec = TimeoutSpec()
    transport: Literal["fast", "aiohttp"] = "fast"
    """A proxy always takes aiohttp."""
    addresses: tuple[str, ...] = ()
    """IP addresses to connect to instead of looking the host's name up."""
    spread_addresses: bool = False
    """Go round the addresses of the target's name instead of staying with the first that answers.
    """


class OpenAIBackendSpec(SpecModel):
    """A server that speaks the OpenAI API."""

    kind: Literal["openai-chat", "openai-completions", "openai-responses", "openai-embeddings"] = (
        "openai-chat"
    )
    stream: bool = True
    include_usage: bool = True
    """Ask for `usage` in the stream's last event (`stream_options.include_usage`)."""
    output_tokens_field: str | None = None
    """What the longest reply is called in the body, where the server wants another name, for
    example `max_completion_tokens`."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Fields put into every body as they are, for example {"ignore_eos": true}."""


class HttpBackendSpec(SpecModel):
    """Any HTTP request."""

    kind: Literal["http"] = "http"
    method: str = "POST"
    path: str = ""
    """Appended to the target's URL."""
    headers: dict[str, str] = Field(default_factory=dict)
    body: str | None = None
    """A template: `{prompt}`, `{output_tokens}` and `{name}` of an input row's field are filled
    in, JSON-escaped."""
    stream: Literal["none", "sse", "lines"] = "none"


class PythonBackendSpec(SpecModel):
    """A callable, sync or async: `module:function`, called with the call's text or row."""

    kind: Literal["python"] = "python"
    function: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    threads: int = Field(default=128, ge=1, le=10_000)
    """Most calls of a plain (not async) function at once, in each worker."""


class NullBackendSpec(SpecModel):
    """No target at all: measures the scheduler itself."""

    kind: Literal["null"] = "null"
    latency_s: float = Field(default=0.0, ge=0)
    chunks: int = Field(default=1, ge=1)


class HeadwayJobsBackendSpec(SpecModel):
    """Jobs of a Headway server, each waited for."""

    kind: Literal["headway-jobs"] = "headway-jobs"
    operation: str = Field(pattern=r"^[A-Za-z0-9_.-]+$")
    input: str = "{}"
    """The operation's input as JSON; a template, as the body of the backend `http`."""
    wait_s: float = Field(default=30.0, gt=0, le=60)
    """How long a job may take, waiting included."""


class PluginBackendSpec(SpecModel):
    """A backend of one's own, by the name of its entry point or as `module:name`."""

    kind: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)


BackendSpec = Annotated[
    OpenAIBackendSpec
    | HttpBackendSpec
    | PythonBackendSpec
    | NullBackendSpec
    | HeadwayJobsBackendSpec
    | PluginBackendSpec,
    Field(discriminator="kind"),
]

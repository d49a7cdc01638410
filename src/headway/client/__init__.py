"""The SDK: `Client` and `AsyncClient` speak to a Headway server over HTTP.

Each name is loaded when it is first asked for: the server and the command line take parts of this
package that need no HTTP library, which takes 0.1 s to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.client.aio import AsyncClient
    from headway.client.errors import (
        Conflict,
        DeadlineExceeded,
        Denied,
        InvalidRequest,
        JobFailed,
        NotFound,
        Refused,
        ServerBusy,
        ServerFault,
        ServerUnreachable,
        TooLarge,
    )
    from headway.client.following import LogChunk
    from headway.client.models import (
        Artifact,
        Event,
        Job,
        JobError,
        JobPage,
        JobRequest,
        OperationInfo,
        PreconditionSpec,
        Problem,
        Progress,
        SubmitOptions,
        Why,
    )
    from headway.client.retrying import RetryPolicy
    from headway.client.sync import Client

__all__ = [
    "Artifact",
    "AsyncClient",
    "Client",
    "Conflict",
    "DeadlineExceeded",
    "Denied",
    "Event",
    "InvalidRequest",
    "Job",
    "JobError",
    "JobFailed",
    "JobPage",
    "JobRequest",
    "LogChunk",
    "NotFound",
    "OperationInfo",
    "PreconditionSpec",
    "Problem",
    "Progress",
    "Refused",
    "RetryPolicy",
    "ServerBusy",
    "ServerFault",
    "ServerUnreachable",
    "SubmitOptions",
    "TooLarge",
    "Why",
]

_PLACES = {
    "AsyncClient": "aio",
    "Conflict": "errors",
    "DeadlineExceeded": "errors",
    "Denied": "errors",
    "InvalidRequest": "errors",
    "JobFailed": "errors",
    "NotFound": "errors",
    "Refused": "errors",
    "ServerBusy": "errors",
    "ServerFault": "errors",
    "ServerUnreachable": "errors",
    "TooLarge": "errors",
    "LogChunk": "following",
    "Artifact": "models",
    "Event": "models",
    "Job": "models",
    "JobError": "models",
    "JobPage": "models",
    "JobRequest": "models",
    "OperationInfo": "models",
    "PreconditionSpec": "models",
    "Problem": "models",
    "Progress": "models",
    "SubmitOptions": "models",
    "Why": "models",
    "RetryPolicy": "retrying",
    "Client": "sync",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value  # asked for once
    return value

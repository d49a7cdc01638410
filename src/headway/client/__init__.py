"""The SDK: `Client` and `AsyncClient` speak to a Headway server over HTTP."""

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

"""What a client raises when a server refuses, does not know, or does not answer."""

from __future__ import annotations

from pydantic import ValidationError

from headway.client.models import Job, Problem
from headway.core.errors import HeadwayError, RequestError


class ServerUnreachable(HeadwayError):
    """No server answered in time: check the address, or that `headway serve` runs."""


class DeadlineExceeded(HeadwayError):
    """The job did not end in the time given; it goes on, and can be waited for again."""


class Refused(RequestError):
    """The server answered with an error; `problem` holds its document."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(_sentence(problem))
        self.problem = problem


class InvalidRequest(Refused):
    """A field is wrong; `problem.errors` names the paths."""


class NotFound(Refused):
    """No such job, operation or artifact, or it is not visible to you."""


class Conflict(Refused):
    """The request contradicts what the server already has, or an id prefix is ambiguous."""


class Denied(Refused):
    """The identity of this client may not do that."""


class TooLarge(Refused):
    """The request is over one of the server's size limits."""


class ServerBusy(Refused):
    """The server asked for patience (429, 503) for longer than this client was ready to wait."""


class ServerFault(Refused):
    """The server failed; the same call may work later. Its log has the request id."""


class JobFailed(HeadwayError):
    """A result was asked for, and the job ended without one; `job` says how."""

    def __init__(self, job: Job) -> None:
        super().__init__(_how_it_ended(job))
        self.job = job


_CLASS_OF_STATUS: dict[int, type[Refused]] = {
    400: InvalidRequest,
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidRequest,
    429: ServerBusy,
    503: ServerBusy,
}


def refusal_from(status: int, body: bytes) -> Refused:
    """The error that belongs to an answer of status 400 or above."""
    try:
        problem = Problem.model_validate_json(body)
    except ValidationError:
        problem = Problem(title=f"HTTP {status}", status=status, detail=_foreign(status, body))
    fallback = ServerFault if status >= 500 else Refused
    return _CLASS_OF_STATUS.get(status, fallback)(problem)


def _foreign(status: int, body: bytes) -> str | None:
    """An answer in other words than the server's own."""
    text = body[:200].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        return f"something in front of the server, such as a proxy, answered HTTP {status}"
    return text or None


def _sentence(problem: Problem) -> str:
    text = problem.detail or problem.title
    fields = "; ".join(f"{error.path}: {error.message}" for error in problem.errors)
    return f"{text} ({fields})" if fields else text


def _how_it_ended(job: Job) -> str:
    outcome = job.outcome or job.state
    if job.error is None:
        return f"job {job.id} ended without a result: {outcome}"
    return f"job {job.id} ended as {outcome}: {job.error.type}: {job.error.message}"

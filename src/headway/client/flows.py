"""Every call of the SDK, written once as a flow; `Client` and `AsyncClient` carry them out."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic_core import PydanticSerializationError

from headway.client.errors import DeadlineExceeded, JobFailed
from headway.client.models import (
    Artifact,
    ArtifactList,
    BatchAnswer,
    BatchRequest,
    Event,
    EventPage,
    Job,
    JobPage,
    JobRequest,
    JobResult,
    LoginLink,
    OperationInfo,
    OperationList,
    SubmitOptions,
    Why,
)
from headway.client.retrying import Retrier
from headway.client.steps import Call, Flow, Query
from headway.core.clock import Clock, ns_from_s, s_from_ns
from headway.core.errors import ConfigError
from headway.core.nesting import MAX_LEVELS
from headway.core.states import JobState

T = TypeVar("T")

# The server holds a waiting request for this long; short enough for proxies that cut idle
# connections after a minute.
WAIT_SLICE_S = 30.0
_NETWORK_MARGIN_S = 15.0


class Flows:
    """The calls of the API as flows of steps.

    Args:
        retrier: Decides about repetitions.
        clock: Measures deadlines.
    """

    def __init__(self, retrier: Retrier, clock: Clock) -> None:
        self._retrier = retrier
        self._clock = clock

    def submit(
        self,
        operation: str,
        input: BaseModel | JsonValue,
        options: SubmitOptions,
        idempotency_key: str | None,
    ) -> Flow[Job]:
        call = _submission(operation, input, options, idempotency_key or new_idempotency_key())
        reply = yield from self._retrier.send(call)
        return Job.model_validate_json(reply.body)

    def submit_batch(self, jobs: Iterable[JobRequest]) -> Flow[list[Job]]:
        keyed = [
            job.model_copy(update={"idempotency_key": job.idempotency_key or new_idempotency_key()})
            for job in jobs
        ]
        batch = BatchRequest(jobs=keyed)
        call = _post("/v1/jobs:batch", batch.model_dump(mode="json", exclude_defaults=True))
        reply = yield from self._retrier.send(call)
        return BatchAnswer.model_validate_json(reply.body).jobs

    def run(
        self,
        operation: str,
        input: BaseModel | JsonValue,
        options: SubmitOptions,
        model: type[T] | None,
        timeout_s: float | None,
    ) -> Flow[T | JsonValue]:
        deadline_ns = self._deadline_ns(timeout_s)
        call = _submission(operation, input, options, new_idempotency_key())
        slice_s = self._slice_s(deadline_ns)
        reply = yield from self._retrier.send(_waiting(call, slice_s))
        if reply.status == 200:
            return _typed_result(JobResult.model_validate_json(reply.body), model)
        job = Job.model_validate_json(reply.body)
        left_s = None if deadline_ns is None else self._left_s(deadline_ns)
        return (yield from self.result(job.id, model, left_s))

    def get(self, job_id: str) -> Flow[Job]:
        reply = yield from self._retrier.send(Call("GET", _job_path(job_id)))
        return Job.model_validate_json(reply.body)

    def wait(self, job_id: str, timeout_s: float | None) -> Flow[Job]:
        deadline_ns = self._deadline_ns(timeout_s)
        while True:
            slice_s = self._slice_s(deadline_ns)
            call = _waiting(Call("GET", _job_path(job_id)), slice_s)
            reply = yield from self._retrier.send(call)
            job = Job.model_validate_json(reply.body)
            if job.is_ended:
                return job
            if self._is_over(deadline_ns):
                raise _not_ended(job, timeout_s)

    def result(
        self, job_id: str, model: type[T] | None, timeout_s: float | None
    ) -> Flow[T | JsonValue]:
        deadline_ns = self._deadline_ns(timeout_s)
        while True:
            call = _waiting(Call("GET", f"{_job_path(job_id)}/result"), self._slice_s(deadline_ns))
            reply = yield from self._retrier.send(call)
            answer = JobResult.model_validate_json(reply.body)
            if answer.job.is_ended:
                return _typed_result(answer, model)
            if self._is_over(deadline_ns):
                raise _not_ended(answer.job, timeout_s)

    def cancel(self, job_id: str) -> Flow[Job]:
        reply = yield from self._retrier.send(_post(f"{_job_path(job_id)}/cancel", None))
        return Job.model_validate_json(reply.body)

    def retry(self, job_id: str) -> Flow[Job]:
        call = _post(f"{_job_path(job_id)}/retry", None, new_idempotency_key())
        reply = yield from self._retrier.send(call)
        return Job.model_validate_json(reply.body)

    def events(self, job_id: str, after: int) -> Flow[list[Event]]:
        call = Call("GET", f"{_job_path(job_id)}/events", query=[("after", str(after))])
        reply = yield from self._retrier.send(call)
        return EventPage.model_validate_json(reply.body).events

    def why(self, job_id: str) -> Flow[Why]:
        reply = yield from self._retrier.send(Call("GET", f"{_job_path(job_id)}/why"))
        return Why.model_validate_json(reply.body)

    def operations(self) -> Flow[list[OperationInfo]]:
        reply = yield from self._retrier.send(Call("GET", "/v1/operations"))
        return OperationList.model_validate_json(reply.body).operations

    def login_link(self) -> Flow[str]:
        call = replace(_post("/v1/login-links", None), repeatable=False)
        reply = yield from self._retrier.send(call)
        return LoginLink.model_validate_json(reply.body).path

    def artifacts(self, job_id: str) -> Flow[list[Artifact]]:
        reply = yield from self._retrier.send(Call("GET", f"{_job_path(job_id)}/artifacts"))
        return ArtifactList.model_validate_json(reply.body).artifacts

    def artifact(self, job_id: str, name: str) -> Flow[bytes]:
        path = f"{_job_path(job_id)}/artifacts/{quote(name)}"
        reply = yield from self._retrier.send(Call("GET", path))
        return reply.body

    def log_text(self, job_id: str, query: Query) -> Flow[str]:
        reply = yield from self._retrier.send(Call("GET", f"{_job_path(job_id)}/logs", query=query))
        return reply.body.decode("utf-8", "replace")

    def _deadline_ns(self, timeout_s: float | None) -> int | None:
        if timeout_s is None:
            return None
        return self._clock.monotonic_ns() + ns_from_s(timeout_s)

    def _slice_s(self, deadline_ns: int | None) -> float:
        if deadline_ns is None:
            return WAIT_SLICE_S
        return min(WAIT_SLICE_S, self._left_s(deadline_ns))

    def _left_s(self, deadline_ns: int) -> float:
        return max(0.0, s_from_ns(deadline_ns - self._clock.monotonic_ns()))

    def _is_over(self, deadline_ns: int | None) -> bool:
        return deadline_ns is not None and self._clock.monotonic_ns() >= deadline_ns

    # Last, because below it `list` would no longer mean the built-in in annotations.
    def list(self, filters: Query) -> Flow[JobPage]:
        reply = yield from self._retrier.send(Call("GET", "/v1/jobs", query=filters))
        return JobPage.model_validate_json(reply.body)


def new_idempotency_key() -> str:
    """A key for one submission: with it, a POST whose answer was lost can be sent again (J14)."""
    return secrets.token_hex(16)


def follow_call(job_id: str, query: Query) -> Call:
    """The call that opens a job's live stream."""
    return Call("GET", f"{_job_path(job_id)}/logs/stream", query=query)


def log_query(
    *, tail: int | None = None, since: str | None = None, attempt: int | None = None
) -> Query:
    """The part of a log that is asked for, as query parameters."""
    return _query(("tail", tail), ("since", since), ("attempt", attempt))


def list_query(
    *,
    state: Iterable[JobState] = (),
    operation: str | None = None,
    labels: Mapping[str, str] | None = None,
    created_by: str | None = None,
    mine: bool = False,
    limit: int | None = None,
    cursor: str | None = None,
) -> Query:
    """Filters of a list as query parameters; what is None is left out."""
    return _query(
        *(("state", one.value) for one in state),
        *(("label", f"{name}={value}") for name, value in (labels or {}).items()),
        ("operation", operation),
        ("created_by", created_by),
        ("mine", "true" if mine else None),
        ("limit", limit),
        ("cursor", cursor),
    )


def _query(*parameters: tuple[str, str | int | None]) -> Query:
    return [(name, str(value)) for name, value in parameters if value is not None]


def _job_path(job_id: str) -> str:
    if not job_id:
        raise ConfigError("the id of the job is empty")
    return f"/v1/jobs/{_segment(job_id)}"


def _segment(text: str) -> str:
    return quote(text, safe="")


def _post(path: str, body: Any, idempotency_key: str | None = None) -> Call:
    headers = {"content-type": "application/json"} if body is not None else {}
    if idempotency_key is not None:
        if not (idempotency_key.isascii() and idempotency_key.isprintable()):
            raise ConfigError("an idempotency key has printable ASCII characters only")
        headers["idempotency-key"] = idempotency_key
    content = None if body is None else _encoded(body)
    return Call("POST", path, headers=headers, body=content)


def _encoded(body: Any) -> bytes:
    try:
        return _JSON.dump_json(body)
    except PydanticSerializationError as error:
        text = f"this cannot be sent as JSON, of which {MAX_LEVELS} levels can be read: {error}"
        raise ConfigError(text) from None


def _submission(
    operation: str,
    input: BaseModel | JsonValue,
    options: SubmitOptions,
    idempotency_key: str,
) -> Call:
    body = options.model_dump(mode="json", exclude_defaults=True)
    if input is not None:
        body["input"] = _jsonable(input)
    return _post(f"/v1/operations/{_segment(operation)}", body, idempotency_key)


def _waiting(call: Call, wait_s: float) -> Call:
    """`call`, to be answered when the job has ended or after `wait_s`."""
    return replace(
        call,
        query=[*call.query, ("wait", f"{wait_s:.3f}s")],
        read_timeout_s=wait_s + _NETWORK_MARGIN_S,
    )


def _jsonable(value: BaseModel | JsonValue) -> JsonValue:
    if isinstance(value, BaseModel):
        dumped: JsonValue = value.model_dump(mode="json")
        return dumped
    return value


def _typed_result(answer: JobResult, model: type[T] | None) -> T | JsonValue:
    if answer.job.state is not JobState.SUCCEEDED:
        raise JobFailed(answer.job)
    if model is None:
        return answer.result
    return TypeAdapter(model).validate_python(answer.result)


def _not_ended(job: Job, timeout_s: float | None) -> DeadlineExceeded:
    return DeadlineExceeded(f"job {job.id} has not ended after {timeout_s} s; it is {job.state}")


_JSON: TypeAdapter[Any] = TypeAdapter(Any)

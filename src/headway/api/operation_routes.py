"""Routes that list operations and submit jobs; each operation has its own, typed by its input."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, create_model

from headway.access.identity import Identity
from headway.api.idempotency import IdempotencyKey
from headway.api.identity import Caller
from headway.api.job_access import JobAccess, result_response
from headway.api.problems import Refusal, problem_answers
from headway.api.submission import Asked, Submissions, fingerprint
from headway.api.views import job_view
from headway.api.wait_parameter import WaitParameter, unless_disconnected, wait_seconds
from headway.client.models import (
    BatchAnswer,
    BatchRequest,
    Job,
    JobResult,
    OperationInfo,
    OperationList,
    SubmitOptions,
)
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry
from headway.store.jobs import JobRow

_ENDED = "With `wait`: the job has ended, however it ended."


class _Sent(msgspec.Struct):
    """The part of a submission that is stored as it was written."""

    input: msgspec.Raw = msgspec.Raw(b"{}")


class OperationRoutes:
    """The routes under `/v1/operations`, and batches.

    Args:
        registry: The operations.
        submissions: Checks what is asked for.
        access: Stores, rings and reads jobs.
    """

    def __init__(self, registry: Registry, submissions: Submissions, access: JobAccess) -> None:
        self._registry = registry
        self._submissions = submissions
        self._access = access

    def router(self) -> APIRouter:
        router = APIRouter(tags=["operations"])
        router.add_api_route("/v1/operations", self.list_operations, response_model=OperationList)
        for operation in self._registry:
            self._add_submit_route(router, operation)
        router.add_api_route(
            "/v1/operations/{name}",
            self.get_operation,
            response_model=OperationInfo,
            responses=problem_answers(404, 422),
        )
        # Behind the typed ones, for a sentence that is better than "no such path".
        router.add_api_route(
            "/v1/operations/{name}", self.unknown, methods=["POST"], include_in_schema=False
        )
        router.add_api_route(
            "/v1/jobs:batch",
            self.submit_batch,
            methods=["POST"],
            status_code=202,
            response_model=BatchAnswer,
            responses=problem_answers(400, 403, 409, 413, 422, 429, 503),
        )
        return router

    async def list_operations(self, caller: Caller) -> Response:
        """Every operation that this server runs, with the schemas of its input and result."""
        found = OperationList(operations=[operation_info(each) for each in self._registry])
        return Response(found.model_dump_json(), media_type="application/json")

    async def get_operation(self, caller: Caller, name: str) -> OperationInfo:
        """One operation."""
        return operation_info(self._submissions.operation(name))

    async def unknown(self, caller: Caller, name: str) -> None:
        self._submissions.operation(name)

    async def submit_batch(self, caller: Caller, batch: BatchRequest) -> Response:
        """Submit several jobs in one commit: all of them are accepted, or none is."""
        asked = [
            self._submissions.asked_in_batch(job, index) for index, job in enumerate(batch.jobs)
        ]
        rows = await self._access.submit(
            [self._submissions.new_job(one, caller) for one in asked], caller
        )
        answer = BatchAnswer(jobs=[job_view(row) for row in rows])
        return Response(answer.model_dump_json(), status_code=202, media_type="application/json")

    def _add_submit_route(self, router: APIRouter, operation: Operation) -> None:
        router.add_api_route(
            f"/v1/operations/{operation.name}",
            self._submit_endpoint(operation),
            methods=["POST"],
            status_code=202,
            response_model=Job,
            response_description="Accepted; the job is durable. Location is its address.",
            responses={
                200: {"model": result_model(operation), "description": _ENDED},
                **problem_answers(400, 403, 409, 413, 422, 429, 503),
            },
            operation_id=f"submit_{operation.name}",
            summary=f"Submit {operation.name}",
            description=operation.summary,
        )

    def _submit_endpoint(self, operation: Operation) -> Callable[..., Any]:
        async def submit(
            request: Request,
            caller: Identity,
            body: SubmitOptions,
            idempotency_key: str | None = None,
            wait: str | None = None,
        ) -> Response:
            asked = await _asked(operation, request, body, idempotency_key)
            new_job = self._submissions.new_job(asked, caller)
            [row] = await self._access.submit([new_job], caller)
            return await self._answer(request, operation, row, caller, wait_seconds(wait))

        # Annotations of a closure are not found by name; and `body` is another class for each.
        submit.__annotations__ = {
            "request": Request,
            "caller": Caller,
            "body": submission_model(operation),
            "idempotency_key": IdempotencyKey,
            "wait": WaitParameter,
        }
        return submit

    async def _answer(
        self, request: Request, operation: Operation, row: JobRow, caller: Identity, wait_s: float
    ) -> Response:
        headers = {"location": f"/v1/jobs/{row.id}"}
        if wait_s > 0:
            waiting = self._access.live.until_ended(row, wait_s)
            ended = await unless_disconnected(request, waiting)
            if ended is None and operation.cancel_on_disconnect:
                await self._access.cancel(row, by=f"{caller.user} (hung up)")
            row = ended or row
        if wait_s > 0 and row.state.is_terminal:
            return await result_response(self._access, row, headers)
        content = job_view(row).model_dump_json()
        return Response(content, status_code=202, headers=headers, media_type="application/json")


def submission_model(operation: Operation) -> type[SubmitOptions]:
    """The request body of an operation: its own input, and the options that all have."""
    input_model = operation.request_model
    needs_input = any(field.is_required() for field in input_model.model_fields.values())
    field: Any = (input_model, ...) if needs_input else (input_model, {})
    return create_model(f"Submit{_title(operation)}", __base__=SubmitOptions, input=field)


def result_model(operation: Operation) -> type[JobResult]:
    """The answer about an ended job of an operation: null unless it succeeded."""
    kept: Any = (operation.result_type | None, None)
    return create_model(f"{_title(operation)}Result", __base__=JobResult, result=kept)


def _title(operation: Operation) -> str:
    return "".join(part.capitalize() for part in re.split(r"[_.-]", operation.name))


def operation_info(operation: Operation) -> OperationInfo:
    return OperationInfo(
        name=operation.name,
        description=operation.summary,
        lane=operation.lane.value,
        retryable=operation.retry.retryable,
        max_attempts=operation.retry.max_attempts,
        timeout_s=operation.timeout_s,
        input_schema=operation.request_schema,
        result_schema=operation.result_schema,
    )


async def _asked(
    operation: Operation, request: Request, body: SubmitOptions, idempotency_key: str | None
) -> Asked:
    sent = await request.body()
    try:
        input_json = bytes(msgspec.json.decode(sent, type=_Sent).input).decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Python's own parser lets NaN and more pass, which is not JSON.
        raise Refusal(422, f"the body is not JSON: {error}") from None
    return Asked(
        operation=operation,
        request=_input_of(operation, body),
        input_json=input_json,
        options=body,
        idempotency_key=idempotency_key,
        fingerprint=fingerprint(operation.name, sent.decode()) if idempotency_key else "",
    )


def _input_of(operation: Operation, body: SubmitOptions) -> BaseModel:
    given = getattr(body, "input")  # noqa: B009 -- the field exists in the operation's own class
    if isinstance(given, BaseModel):
        return given
    return operation.request_model.model_validate(given)

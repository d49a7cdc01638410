"""A Headway server as the target: each request submits a job and waits for its result (L9)."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.backends.backend import Answer, Progress, TargetInfo
from headway.backends.endpoint import Endpoint
from headway.backends.http import HttpBackend
from headway.backends.http_progress import fail_at_now
from headway.backends.spec import HeadwayJobsBackendSpec, HttpBackendSpec
from headway.core.errors import TargetError
from headway.records.record import Failure
from headway.wire.exchange import Exchange

_ACCEPTED = 202
"""The job has not ended within the time that the server was asked to wait."""


class HeadwayJobsBackend(HttpBackend):
    """Submits an operation's jobs; a job that does not succeed is a failed request.

    Args:
        spec: Which operation, with what input, a template as of the backend `http`.
        endpoint: The server.
    """

    def __init__(self, spec: HeadwayJobsBackendSpec, endpoint: Endpoint) -> None:
        path = f"/v1/operations/{spec.operation}"
        body = f'{{"input": {spec.input}}}'
        super().__init__(HttpBackendSpec(path=f"{path}?wait={spec.wait_s:g}s", body=body), endpoint)
        self._operation = spec.operation
        self._wait_s = spec.wait_s

    async def validate(self) -> TargetInfo:
        """Ask the server whether it has the operation; nothing is submitted."""
        info = await super().validate()
        root = self._endpoint.origin.path
        exchange = await self._endpoint.ask("GET", f"{root}/v1/operations/{self._operation}")
        if exchange.failure is not None or exchange.status != 200:
            raise TargetError(
                f"{info.url} does not offer the operation {self._operation!r} "
                f"(status {exchange.status}); `headway jobs operations` lists what it offers"
            )
        return info

    def read(self, exchange: Exchange, progress: Progress) -> Answer:
        answer = super().read(exchange, progress)
        if answer.failure is not None:
            return answer
        failure = self._outcome(exchange)
        if failure is None:
            return answer
        fail_at_now(progress)
        return Answer(failure=failure)

    def _outcome(self, exchange: Exchange) -> Failure | None:
        if exchange.status == _ACCEPTED:
            text = f"a job had not ended after {self._wait_s:g} s"
            return Failure(category="timeout", message=text, status=_ACCEPTED)
        try:
            job: dict[str, Any] = msgspec.json.decode(exchange.body)["job"]
            outcome, job_id, error = job["outcome"], job["id"], job.get("error") or {}
        except (msgspec.DecodeError, KeyError, TypeError):
            return Failure(category="protocol", message="the answer is no ended job")
        if outcome == "succeeded":
            return None
        why = f": {error['message']}" if error.get("message") else ""
        return Failure(category="server", message=f"a job ended as {outcome}{why}", body=job_id)

"""The synchronous client."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx
from pydantic import BaseModel, JsonValue

from headway.client.address import server_address
from headway.client.asking import Ask
from headway.client.credentials import find_credentials
from headway.client.flows import follow_call, list_query, log_query
from headway.client.following import LogChunk
from headway.client.limits import Limits
from headway.client.models import (
    Artifact,
    Event,
    Job,
    JobPage,
    JobRequest,
    OperationInfo,
    SubmitOptions,
    Why,
)
from headway.client.provisions import Provisions
from headway.client.retrying import RetryPolicy
from headway.client.steps import Answer, Call, Flow, Lost, Pause, Reply
from headway.client.transport import (
    Brain,
    http_settings,
    lost_from,
    partial_file,
    reply_from,
    request_from,
)
from headway.core.states import JobState

T = TypeVar("T")


class Client:
    """A Headway server, as a Python object. Safe to share between threads.

    Calls that are safe to repeat are repeated when the server is busy or the connection breaks,
    for as long as the retry policy allows; submissions carry an Idempotency-Key for that.

    Args:
        server: Base URL; default HEADWAY_SERVER, else this host.
        retry: How patient to be.
        cacert: PEM file with the authority that signed the server's certificate; default
            HEADWAY_CACERT, else those that are commonly trusted.
        token: Access token; default HEADWAY_TOKEN, else HEADWAY_TOKEN_FILE, else the one that
            `headway login` has kept for this server.
        workspace: Where to work; default HEADWAY_WORKSPACE, else the one that was logged in to.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        retry: RetryPolicy | None = None,
        cacert: str | None = None,
        token: str | None = None,
        workspace: str | None = None,
    ) -> None:
        self.server = server_address(server)
        credentials = find_credentials(self.server, token, workspace)
        self._brain = Brain(retry or RetryPolicy())
        self._http = httpx.Client(**http_settings(self.server, cacert, credentials))
        self._closing = threading.Event()

    def close(self) -> None:
        """Close the connections; a pause between two tries ends at once."""
        self._closing.set()
        self._http.close()

    @property
    def provisions(self) -> Provisions:
        """Secrets, targets and overlays."""
        return Provisions(self._brain.provisions, self._carry_out)

    @property
    def limits(self) -> Limits:
        """Limits of workspaces and users, and locks."""
        return Limits(self._brain.limits, self._carry_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def perform(self, ask: Ask[T]) -> T:
        """Carry out a call of `headway.client.admin` and its like."""
        return self._carry_out(self._brain.ask(ask))

    def submit(
        self,
        operation: str,
        input: BaseModel | JsonValue = None,
        *,
        options: SubmitOptions | None = None,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit one job; it is durable when this returns."""
        flow = self._brain.flows.submit(
            operation, input, options or SubmitOptions(), idempotency_key
        )
        return self._carry_out(flow)

    @overload
    def run(
        self,
        operation: str,
        input: BaseModel | JsonValue = None,
        model: None = None,
        *,
        options: SubmitOptions | None = None,
        timeout_s: float | None = None,
    ) -> JsonValue: ...
    @overload
    def run(
        self,
        operation: str,
        input: BaseModel | JsonValue,
        model: type[T],
        *,
        options: SubmitOptions | None = None,
        timeout_s: float | None = None,
    ) -> T: ...
    def run(
        self,
        operation: str,
        input: BaseModel | JsonValue = None,
        model: type[Any] | None = None,
        *,
        options: SubmitOptions | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Submit a job, wait for it, and return what it returned; a quick one takes one call.

        Raises:
            JobFailed: the job ended without a result.
            DeadlineExceeded: it has not ended after `timeout_s`; the job itself goes on.
        """
        flow = self._brain.flows.run(operation, input, options or SubmitOptions(), model, timeout_s)
        return self._carry_out(flow)

    def submit_batch(self, jobs: Iterable[JobRequest]) -> list[Job]:
        """Submit several jobs in one commit: all of them or none."""
        return self._carry_out(self._brain.flows.submit_batch(jobs))

    def get(self, job_id: str) -> Job:
        """The job now. An id may be shortened to any unambiguous beginning, here and below."""
        return self._carry_out(self._brain.flows.get(job_id))

    def wait(self, job_id: str, *, timeout_s: float | None = None) -> Job:
        """The job once it has ended, however it ended.

        Raises:
            DeadlineExceeded: it has not ended after `timeout_s`; the job itself goes on.
        """
        return self._carry_out(self._brain.flows.wait(job_id, timeout_s))

    @overload
    def result(
        self, job_id: str, model: None = None, *, timeout_s: float | None = None
    ) -> JsonValue: ...
    @overload
    def result(self, job_id: str, model: type[T], *, timeout_s: float | None = None) -> T: ...
    def result(
        self, job_id: str, model: type[Any] | None = None, *, timeout_s: float | None = None
    ) -> Any:
        """Wait for the job and return what it returned, validated as `model` when one is given.

        Raises:
            JobFailed: the job ended without a result.
            DeadlineExceeded: it has not ended after `timeout_s`; the job itself goes on.
        """
        return self._carry_out(self._brain.flows.result(job_id, model, timeout_s))

    def cancel(self, job_id: str) -> Job:
        """Ask for the job's end. Cancelling a job that has ended changes nothing."""
        return self._carry_out(self._brain.flows.cancel(job_id))

    def retry(self, job_id: str) -> Job:
        """Run an ended job's operation again, with the same input, as a new job."""
        return self._carry_out(self._brain.flows.retry(job_id))

    def events(self, job_id: str, *, after: int = 0) -> list[Event]:
        """What happened to the job, oldest first, following event number `after`."""
        return self._carry_out(self._brain.flows.events(job_id, after))

    def why(self, job_id: str) -> Why:
        """Why the job does not run yet."""
        return self._carry_out(self._brain.flows.why(job_id))

    def operations(self) -> list[OperationInfo]:
        """What the server can run."""
        return self._carry_out(self._brain.flows.operations())

    def login_link(self) -> str:
        """Where on the server a browser is signed in as this client's user; once, for a minute."""
        return self._carry_out(self._brain.flows.login_link())

    def artifacts(self, job_id: str) -> list[Artifact]:
        """The files that the job left behind."""
        return self._carry_out(self._brain.flows.artifacts(job_id))

    def artifact(self, job_id: str, name: str) -> bytes:
        """The content of one artifact."""
        return self._carry_out(self._brain.flows.artifact(job_id, name))

    def download(self, job_id: str, name: str, to: Path) -> None:
        """Write one artifact to a file, however large it is: whole, or not at all.

        Raises:
            NotFound: there is no such artifact.
            OSError: the file cannot be written.
        """
        flow = self._brain.flows.artifact(job_id, name)
        self._carry_out(flow, lambda call: self._save(call, to))

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: str | None = None,
        attempt: int | None = None,
    ) -> Iterator[str]:
        """The job's log, in pieces; with `follow`, until the job has ended.

        Args:
            job_id: Which job.
            follow: Go on with what is written later.
            tail: Only the last so many lines of what is there now.
            since: Only what follows this position (`attempt:byte-offset`).
            attempt: Only this attempt's log.
        """
        query = log_query(tail=tail, since=since, attempt=attempt)
        if not follow:
            yield self._carry_out(self._brain.flows.log_text(job_id, query))
            return
        for said in self._follow(follow_call(job_id, query)):
            if isinstance(said, LogChunk):
                yield said.text

    def follow(
        self, job_id: str, *, tail: int | None = None, since: str | None = None
    ) -> Iterator[LogChunk | Job]:
        """The job's log and its changes as they happen, until it has ended.

        The last thing that comes is the ended job. A broken connection or a restarted server is
        bridged without repeating or skipping a byte of the log.
        """
        return self._follow(follow_call(job_id, log_query(tail=tail, since=since)))

    def _follow(self, opening: Call) -> Iterator[LogChunk | Job]:
        cursor = self._brain.cursor(opening)
        while True:
            answer: Reply | Lost = Lost("the stream ended early")
            try:
                request = request_from(cursor.call(), self._http)
                with closing(self._http.send(request, stream=True)) as response:
                    if response.status_code >= 400:
                        response.read()
                        answer = reply_from(response)
                    else:
                        for data in response.iter_raw():
                            yield from cursor.feed(data)
                            if cursor.ended:
                                return
            except httpx.TransportError as error:
                answer = lost_from(error)
            self._closing.wait(cursor.interrupted(answer))

    def _carry_out(
        self, flow: Flow[T], exchange: Callable[[Call], Reply | Lost] | None = None
    ) -> T:
        exchange = exchange or self._exchange
        answer: Answer = None
        try:
            while True:
                step = flow.send(answer)
                if isinstance(step, Pause):
                    self._closing.wait(step.seconds)
                    answer = None
                else:
                    answer = exchange(step)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _exchange(self, call: Call) -> Reply | Lost:
        try:
            return reply_from(self._http.send(request_from(call, self._http)))
        except httpx.TransportError as error:
            return lost_from(error)

    def _save(self, call: Call, to: Path) -> Reply | Lost:
        """Carry out a call whose answer is written to a file while it comes."""
        partial = partial_file(to)
        try:
            request = request_from(call, self._http)
            with closing(self._http.send(request, stream=True)) as response:
                if response.status_code >= 400:
                    response.read()
                    return reply_from(response)
                with partial.open("wb") as file:
                    for data in response.iter_bytes():
                        file.write(data)
            partial.replace(to)
        except httpx.TransportError as error:
            return lost_from(error)
        finally:
            partial.unlink(missing_ok=True)
        return Reply(response.status_code, {}, b"")

    # Last, because below it `list` would no longer mean the built-in in annotations.
    def list(
        self,
        *,
        state: Iterable[JobState] = (),
        operation: str | None = None,
        labels: Mapping[str, str] | None = None,
        created_by: str | None = None,
        mine: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> JobPage:
        """One page of jobs, newest first."""
        query = list_query(
            state=state,
            operation=operation,
            labels=labels,
            created_by=created_by,
            mine=mine,
            limit=limit,
            cursor=cursor,
        )
        return self._carry_out(self._brain.flows.list(query))

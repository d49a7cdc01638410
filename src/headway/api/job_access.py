"""What routes do to jobs: each goes through the caller's workspace and rings who must know."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import anyio
import msgspec
from fastapi import Response
from fastapi.responses import StreamingResponse

from headway.access.identity import Identity
from headway.api.fair_use import FairUse
from headway.api.gate import Denied
from headway.api.job_feed import JobFeed
from headway.api.live import LiveJobs
from headway.api.log_files import JobLogs
from headway.api.premises import Premises
from headway.api.problems import Refusal
from headway.api.submission import Submissions
from headway.api.views import job_view
from headway.client.models import JobResult
from headway.core.statedir import StateDir
from headway.core.states import Lane
from headway.dispatch.doorbell import CANCEL, WORK, Doorbell, job_topic
from headway.dispatch.inline_lane import Admission, Busy
from headway.store.jobs import Ambiguous, CancelResult, JobRow, NotFound
from headway.store.limits import WHOLE, QueueFull
from headway.store.store import Store
from headway.store.submissions import Idempotency, IdempotencyConflict, NewJob, submission_again

_FILE_PIECE_BYTES = 256 * 1024
_FULL_RETRY_AFTER_S = "5"
"""Until jobs have started; nobody knows how long that is."""


class JobAccess:
    """Jobs as routes use them.

    Args:
        store: Durable state.
        doorbell: Rung after what must be noticed at once.
        live: Lets requests wait.
        state_dir: Logs, artifacts and large results.
        admit: Keeps places in the inline lane, or says that it is full.
        feed: Told of new jobs, for which nothing rings.
        premises: Checks what only the store can tell of a submission; None: nothing is checked.
        fair_use: Says how many jobs a workspace may submit in a time; None: any number.
        denied: Told of who asks for a job of another workspace; None: nobody is.
        submissions: Asks of a retry what was asked of the submission; None: nothing is asked.
    """

    def __init__(
        self,
        store: Store,
        doorbell: Doorbell,
        live: LiveJobs,
        state_dir: StateDir,
        admit: Callable[[int], Admission | Busy],
        feed: JobFeed,
        premises: Premises | None = None,
        submissions: Submissions | None = None,
        fair_use: FairUse | None = None,
        denied: Denied | None = None,
    ) -> None:
        self._fair_use = fair_use
        self._denied = denied
        self._premises = premises
        self._submissions = submissions
        self.store = store
        self.live = live
        self.state_dir = state_dir
        self._doorbell = doorbell
        self._admit = admit
        self._feed = feed

    async def submit(self, jobs: Sequence[NewJob], caller: Identity | None = None) -> list[JobRow]:
        """Store jobs in one commit and ring for them.

        Raises:
            Refusal: 409; an idempotency key was used for another request. 503; the inline lane
                is full, and nothing is queued behind it in silence (J4). 422; a job names a
                secret that its workspace has not. 429; more jobs would wait than may, or the
                workspace of `caller` has submitted too many in a short time. 503; more would wait
                on the whole server than may.
        """
        if self._fair_use is not None:
            self._fair_use.check_submission(jobs, caller)
        if self._premises is not None:
            await self._premises.check(jobs)
        with self._places_for(jobs):
            answer = await self.store.submit(jobs)
        if isinstance(answer, IdempotencyConflict):
            raise Refusal(
                409,
                f"the idempotency key {answer.key!r} belongs to another request"
                f" (job {answer.job_id}); use a new key for a new job",
            )
        if isinstance(answer, QueueFull):
            raise _full(answer)
        self._doorbell.ring(WORK)
        self._feed.submitted(submitted.job.id for submitted in answer)
        return [submitted.job for submitted in answer]

    def _places_for(self, jobs: Sequence[NewJob]) -> AbstractContextManager[object]:
        inline = sum(job.lane == Lane.INLINE for job in jobs)
        if inline == 0:
            return nullcontext()
        admission = self._admit(inline)
        if isinstance(admission, Busy):
            retry_after = str(math.ceil(admission.retry_after_s))
            detail = "the inline lane is full; send the request again later"
            raise Refusal(503, detail, headers={"retry-after": retry_after})
        return admission

    async def find(self, reference: str, caller: Identity) -> JobRow:
        """The caller's job with this id or unambiguous prefix.

        Raises:
            Refusal: 404 or 409; there is none, or more than one.
        """
        found = await self.store.find(reference, caller.workspace)
        if isinstance(found, NotFound):
            await self._note_foreign(reference, caller)
            raise Refusal(404, f"there is no job {reference!r}")
        if isinstance(found, Ambiguous):
            examples = ", ".join(found.examples)
            raise Refusal(
                409, f"more than one job's id begins with {reference!r} ({examples}); write more"
            )
        return found

    async def _note_foreign(self, reference: str, caller: Identity) -> None:
        """Tell of an id of another workspace; looked for also when there is none, so that the
        time of the answer does not tell one from the other.
        """
        if isinstance(await self.store.find(reference), JobRow) and self._denied is not None:
            self._denied(caller, caller.address, "job of another workspace", 404, caller.workspace)

    async def retry(self, row: JobRow, caller: Identity, idempotency_key: str | None) -> JobRow:
        """A new job that does an ended job's work again.

        Raises:
            Refusal: 409; the job has not ended. 404; it was deleted meanwhile. 422; it would not
                be taken now.
        """
        if not row.state.is_terminal:
            raise Refusal(409, f"job {row.id} is {row.state}; only an ended job can be retried")
        payload = await self.store.payload(row.id)
        if payload is None:
            raise Refusal(404, f"there is no job {row.id!r}")
        again = submission_again(row, payload, caller.user)
        if self._submissions is not None:
            again = self._submissions.again(again, caller)
        if idempotency_key is not None:
            idempotency = Idempotency(key=idempotency_key, fingerprint=f"retry:{row.id}")
            again = msgspec.structs.replace(again, idempotency=idempotency)
        [new_row] = await self.submit([again], caller)
        return new_row

    async def cancel(self, row: JobRow, by: str) -> JobRow:
        """Cancel a job that waits, ask a running one to stop, leave an ended one alone."""
        result = await self.store.request_cancel(row.id, by)
        if result is CancelResult.REQUESTED:
            self._doorbell.ring(CANCEL)
        elif result is CancelResult.CANCELLED:
            self._doorbell.ring(job_topic(row.id))
        found = await self.store.find(row.id)
        return found if isinstance(found, JobRow) else row

    def logs(self, row: JobRow, *, debug: bool = False) -> JobLogs:
        """The job's logs: its output, or what Headway and `job.log` say about it."""
        path_of = self.state_dir.attempt_debug_log if debug else self.state_dir.attempt_log
        return JobLogs(lambda attempt: path_of(row.id, attempt))


def _full(full: QueueFull) -> Refusal:
    """What is said when too many jobs wait: 429 to whose they are, 503 when it is all of them."""
    whose = "this server" if full.workspace is None else f"workspace {full.workspace!r}"
    if full.user != WHOLE:
        whose = f"{full.user} in {whose}"
    unit = "jobs" if full.unit == "jobs" else "bytes of input"
    words = (
        f"{whose} has {full.waiting} {unit} waiting and may have {full.limit}; these would be"
        f" {full.submitted} more: wait until some jobs have started, or cancel some"
    )
    status = 503 if full.workspace is None else 429
    return Refusal(status, words, headers={"retry-after": _FULL_RETRY_AFTER_S})


async def result_response(
    access: JobAccess, row: JobRow, headers: Mapping[str, str] | None = None
) -> Response:
    """An ended job with its result; a large one is sent from its file, never held in memory."""
    stored = await access.store.result(row.id)
    if stored is not None and stored.file is not None:
        path = access.state_dir.root / stored.file
        return StreamingResponse(
            _around(row, path), headers=dict(headers or {}), media_type="application/json"
        )
    start, end = _envelope(row)
    text = "null" if stored is None or stored.json is None else stored.json
    return Response(
        start + text.encode() + end, headers=dict(headers or {}), media_type="application/json"
    )


def _envelope(row: JobRow) -> tuple[bytes, bytes]:
    """What stands before and after the result, which is JSON already and is not parsed again."""
    whole = JobResult(job=job_view(row)).model_dump_json(exclude={"result"})
    return whole.removesuffix("}").encode() + b',"result":', b"}"


async def _around(row: JobRow, path: Path) -> AsyncIterator[bytes]:
    start, end = _envelope(row)
    yield start
    async with await anyio.open_file(path, "rb") as file:
        while piece := await file.read(_FILE_PIECE_BYTES):
            yield piece
    yield end

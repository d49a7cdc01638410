"""What an attempt's ending does to its job. Pure: it decides, the dispatcher acts."""

from __future__ import annotations

import random
from pathlib import Path

from headway.core.failure import ErrorInfo
from headway.core.retry import Verdict
from headway.core.states import Outcome
from headway.execution.attempt import (
    Cancelled,
    Died,
    Ending,
    NotStarted,
    OutOfMemory,
    Raised,
    RetryAsked,
    Succeeded,
    TimedOut,
)
from headway.store.attempts import AttemptEnd, ClaimedJob, Finish, Release, RetryLater
from headway.store.jobs import StoredResult


class Decider:
    """Applies a job's retry policy to the ending of its attempt.

    Args:
        rng: Source of the backoff's jitter.
        root: The state directory; results in files are stored relative to it.
    """

    def __init__(self, rng: random.Random, root: Path) -> None:
        self._rng = rng
        self._root = root

    def decide(self, claimed: ClaimedJob, ending: Ending, draining: bool) -> AttemptEnd:
        """What becomes of the job.

        Args:
            claimed: The job as it was claimed.
            ending: How its attempt ended.
            draining: It was stopped because this worker ends, not because somebody wanted it.
        """
        match ending:
            case Succeeded():
                return self._succeeded(ending)
            case NotStarted():
                return Release(reason=ending.reason)
            case Cancelled() if draining:
                return Release(reason="the worker was stopped")
            case Cancelled():
                return Finish(outcome=Outcome.CANCELLED)
            case RetryAsked():
                return self._retry_asked(claimed, ending)
            case Raised():
                return self._raised(claimed, ending)
            case TimedOut():
                message = f"it ran longer than its limit of {ending.timeout_s:g} s"
                error = ErrorInfo(type="TimedOut", message=message)
                return Finish(outcome=Outcome.TIMED_OUT, error=error)
            case OutOfMemory():
                error = ending.error or ErrorInfo(type="OutOfMemory", message=ending.evidence)
                return self._crashed(claimed, Outcome.OUT_OF_MEMORY, error)
            case Died():
                error = ErrorInfo(type="ProcessDied", message=ending.description)
                return self._crashed(claimed, Outcome.WORKER_LOST, error)

    def _succeeded(self, ending: Succeeded) -> Finish:
        if ending.result_file is not None:
            file = str(ending.result_file.relative_to(self._root))
            return Finish(outcome=Outcome.SUCCEEDED, result=StoredResult(file=file))
        if ending.result is None:
            return Finish(outcome=Outcome.SUCCEEDED)
        result = StoredResult(json=ending.result.decode())
        return Finish(outcome=Outcome.SUCCEEDED, result=result)

    def _retry_asked(self, claimed: ClaimedJob, ending: RetryAsked) -> AttemptEnd:
        attempts = _attempts(claimed)
        error = ErrorInfo(type="Retry", message=ending.reason)
        if claimed.payload.retry.after_retry_asked(attempts) is not Verdict.AGAIN:
            tried = f"{ending.reason} (no attempt is left after {attempts})"
            error = ErrorInfo(type="Retry", message=tried)
            return Finish(outcome=Outcome.FAILED, error=error)
        delay_s = ending.after_s
        if delay_s is None:
            delay_s = claimed.payload.retry.delay_s(attempts, self._rng)
        return RetryLater(
            outcome=Outcome.FAILED, delay_s=delay_s, reason=ending.reason, error=error
        )

    def _raised(self, claimed: ClaimedJob, ending: Raised) -> AttemptEnd:
        attempts = _attempts(claimed)
        policy = claimed.payload.retry
        if policy.after_error(attempts, ending.retry) is not Verdict.AGAIN:
            return Finish(outcome=Outcome.FAILED, error=ending.error)
        return RetryLater(
            outcome=Outcome.FAILED,
            delay_s=policy.delay_s(attempts, self._rng),
            reason=f"{ending.error.type}: {ending.error.message}",
            error=ending.error,
        )

    def _crashed(self, claimed: ClaimedJob, outcome: Outcome, error: ErrorInfo) -> AttemptEnd:
        crashes = claimed.job.crashes + 1
        policy = claimed.payload.retry
        verdict = policy.after_crash(_attempts(claimed), crashes)
        if verdict is Verdict.AGAIN:
            return RetryLater(
                outcome=outcome,
                delay_s=policy.crash_delay_s(crashes, self._rng),
                reason=error.message,
                error=error,
                crashed=True,
            )
        if verdict is Verdict.QUARANTINED:
            outcome = Outcome.QUARANTINED
        return Finish(outcome=outcome, error=error, crashed=True)


def _attempts(claimed: ClaimedJob) -> int:
    """Attempts that count, this one included."""
    return claimed.claim.attempt - claimed.job.released

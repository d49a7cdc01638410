"""What the author of operations imports.

    from headway.jobs import operation, Retry

See `docs/operations.md`. Importing this loads neither the server nor the store.
"""

from __future__ import annotations

from headway.core.failure import ErrorInfo
from headway.core.states import Lane
from headway.jobs.artifacts import Artifact
from headway.jobs.cancellation import JobCancelled
from headway.jobs.context import JobContext, attempt_cache, current_job
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.operation import Operation, operation
from headway.jobs.precondition import Condition, Precondition, precondition
from headway.jobs.registry import Registry, load_operations
from headway.jobs.retry import Retry

__all__ = [
    "Artifact",
    "Condition",
    "EnvironmentPolicy",
    "ErrorInfo",
    "JobCancelled",
    "JobContext",
    "Lane",
    "Operation",
    "Precondition",
    "Registry",
    "Retry",
    "attempt_cache",
    "current_job",
    "load_operations",
    "operation",
    "precondition",
]

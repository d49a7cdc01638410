"""Finding jobs: by id, by prefix, by filter."""

from __future__ import annotations

import heapq
from typing import Any

from headway.core.ids import ID_LENGTH, normalize_reference
from headway.core.states import JobState
from headway.store.jobs import Ambiguous, JobPage, JobQuery, JobRow, NotFound
from headway.store.sqlite.rows import JOB_COLUMNS, job_from
from headway.store.sqlite.transaction import Transaction

_EXAMPLES = 3
MAX_PAGE = 1000


def find(
    transaction: Transaction, reference: str, workspace: str | None
) -> JobRow | NotFound | Ambiguous:
    """The one job that a whole id or a prefix names."""
    prefix = normalize_reference(reference)
    if prefix is None:
        return NotFound(reference=reference)
    if len(prefix) == ID_LENGTH:
        row = transaction.one("get", id=prefix)
        job = None if row is None else job_from(row)
        visible = job is not None and workspace in (None, job.workspace)
        return job if job is not None and visible else NotFound(reference=reference)
    rows = transaction.all("find_prefix", prefix=prefix, workspace=workspace, limit=_EXAMPLES)
    if not rows:
        return NotFound(reference=reference)
    if len(rows) == 1:
        return job_from(rows[0])
    return Ambiguous(reference=reference, examples=tuple(job_from(row).id for row in rows))


def list_jobs(transaction: Transaction, query: JobQuery) -> JobPage:
    """A page, newest first.

    With a filter by state or operation, each state is read apart and the pages are merged: an
    index gives the order within one state only, and sorting a million rows to show a hundred is
    what P18 forbids.
    """
    limit = max(1, min(query.limit, MAX_PAGE))
    pages = [
        transaction.select(*list_statement(query, state, limit + 1)) for state in _states(query)
    ]
    newest_first = heapq.merge(*pages, key=lambda row: -row[0])
    rows = [row for row, _ in zip(newest_first, range(limit + 1), strict=False)]
    jobs = tuple(job_from(row) for row in rows[:limit])
    return JobPage(jobs=jobs, cursor=jobs[-1].sequence if len(rows) > limit else None)


def list_statement(
    query: JobQuery, state: JobState | None, limit: int
) -> tuple[str, dict[str, Any]]:
    """The statement for one state (None: any), put together from fixed parts."""
    parameters: dict[str, Any] = {"limit": limit}
    conditions = []
    source = "jobs"
    if query.labels:
        source = "labels AS label_0 CROSS JOIN jobs ON jobs.sequence = label_0.sequence"
    for column, value in (
        ("state", state),
        ("operation", query.operation),
        ("workspace", query.workspace),
        ("created_by", query.created_by),
    ):
        if value is not None:
            # A unary plus keeps the planner from leaving the label's index for another.
            conditions.append(f"{'+' if query.labels else ''}jobs.{column} = :{column}")
            parameters[column] = value
    for number, (name, value) in enumerate(query.labels.items()):
        conditions.append(_label_condition(number))
        parameters |= {f"name_{number}": name, f"value_{number}": value}
    order = "label_0.sequence" if query.labels else "jobs.sequence"
    if query.before is not None:
        conditions.append(f"{order} < :before")
        parameters["before"] = query.before
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    columns = ", ".join(f"jobs.{column.strip()}" for column in JOB_COLUMNS.split(","))
    sql = f"SELECT {columns} FROM {source} {where}ORDER BY {order} DESC LIMIT :limit"  # noqa: S608 - fixed parts
    return sql, parameters


def _label_condition(number: int) -> str:
    if number == 0:
        return "label_0.name = :name_0 AND label_0.value = :value_0"
    return (
        f"EXISTS (SELECT 1 FROM labels WHERE labels.name = :name_{number}"  # noqa: S608 - a number
        f" AND labels.value = :value_{number} AND labels.sequence = jobs.sequence)"
    )


def _states(query: JobQuery) -> tuple[JobState | None, ...]:
    if query.states:
        return tuple(dict.fromkeys(query.states))
    if query.operation is not None and not query.labels:
        return tuple(JobState)
    return (None,)

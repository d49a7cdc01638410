"""The named queries of the `sql` directory, each with its explanation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from headway.store.sqlite.account_rows import COLUMNS_OF_ACCESS, COLUMNS_OF_AUDIT
from headway.store.sqlite.rows import JOB_COLUMNS

_COLUMNS = {"{job}": JOB_COLUMNS, "{token}": COLUMNS_OF_ACCESS, "{audit}": COLUMNS_OF_AUDIT}
_HEAD = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Query:
    """One statement.

    Attributes:
        why: The comment above it.
    """

    name: str
    why: str
    sql: str


def load_queries() -> dict[str, Query]:
    """Read every query; `{job}` stands for the columns of a `JobRow`, others likewise."""
    queries: dict[str, Query] = {}
    for file in sorted(resources.files("headway.store.sqlite").joinpath("sql").iterdir(), key=str):
        for query in _parse(file.read_text("utf-8")):
            if query.name in queries:
                raise ValueError(f"two queries are named {query.name}")
            queries[query.name] = query
    return queries


def _parse(text: str) -> list[Query]:
    parts = _HEAD.split(text)[1:]
    return [_query(name, body) for name, body in zip(parts[::2], parts[1::2], strict=True)]


def _query(name: str, body: str) -> Query:
    lines = body.strip().splitlines()
    why = " ".join(line[2:].strip() for line in lines if line.startswith("--"))
    sql = "\n".join(line for line in lines if not line.startswith("--"))
    for mark, columns in _COLUMNS.items():
        sql = sql.replace(mark, columns)
    return Query(name, why, sql.rstrip().rstrip(";"))

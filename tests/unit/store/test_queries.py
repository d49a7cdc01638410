"""The named queries: each is explained, used, and answered by an index (P18)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import headway.store.sqlite
from headway.core.statedir import StateDir
from headway.core.states import JobState
from headway.store.jobs import JobQuery
from headway.store.sqlite.connections import connect_writer
from headway.store.sqlite.listing import list_statement
from headway.store.sqlite.queries import load_queries
from headway.store.sqlite.schema import ensure_schema

QUERIES = load_queries()
LIVE_WORK = {"count_live", "owners", "running_totals"}
"""Cost as much as there is live work; they may group in a temporary tree."""
LONG_READS = {"ended_beyond"}
"""Read all of the ended jobs' covering index, on the connection for long reads."""
SMALL_TABLES = {
    "count_ended", "targets", "overlays", "sealed_secrets", "users", "other_administrators",
    "workspaces", "tokens", "accounts_exist", "close_server",
}  # fmt: skip
"""Read a whole table that has one row for each operation and outcome, or that people fill."""
SHORT = {"limits_version", "limits", "concurrency_limits", "lock_members", "pending_totals"}
"""Tables with a row for each limit, lock or user."""
MADE = {"line", "waited", "wanted", "waiting", "running"}
"""What a statement makes as it goes: sums, or a row for each line or lock somebody waits in."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    state_dir = StateDir(tmp_path_factory.mktemp("plans"))
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    with closing(connect_writer(state_dir.database)) as connection:
        yield connection


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    names = dict.fromkeys(re.findall(r":(\w+)", sql))
    rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", names).fetchall()
    return [row[3] for row in rows]


@pytest.mark.parametrize("name", QUERIES)
def test_no_query_scans_or_sorts_the_jobs(name: str, database: sqlite3.Connection) -> None:
    steps = plan(database, QUERIES[name].sql)
    if name in LONG_READS:
        assert any("COVERING INDEX jobs_ended" in step for step in steps)
        return
    allowed = LIVE_WORK | SMALL_TABLES
    for step in steps:
        scan = re.match(r"SCAN (\w+)", step)
        read = {"CONSTANT"} | SHORT | MADE
        whole = scan is not None and "USING" not in step and scan[1] not in read
        assert not whole or name in allowed or "json_each" in step, (name, steps)
        assert "TEMP B-TREE" not in step or name in LIVE_WORK | {"tokens"}, (name, steps)


@pytest.mark.parametrize(("name", "index"), [("ready_lines", "ready"), ("lock_lines", "lock_line")])
def test_lines_are_found_by_one_step_each_and_read_in_their_order(
    database: sqlite3.Connection, name: str, index: str
) -> None:
    steps = plan(database, QUERIES[name].sql)
    first = "lane" if index == "ready" else "lock_name"
    for following in ("workspace=? AND created_by>?", "workspace>?"):
        step = f"further USING INDEX jobs_{index} ({first}=? AND {following})"
        assert any(step in each for each in steps), steps
    line = f"jobs USING INDEX jobs_{index} ({first}=? AND workspace=? AND created_by=?)"
    assert any(line in each for each in steps), steps


def test_the_claim_goes_by_primary_key(database: sqlite3.Connection) -> None:
    steps = plan(database, QUERIES["claim"].sql)
    assert "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)" in steps


@pytest.mark.parametrize(
    ("query", "state", "index"),
    [
        (JobQuery(), None, "SCAN jobs"),  # backwards along the primary key, as far as the page goes
        (JobQuery(before=5), None, "USING INTEGER PRIMARY KEY (rowid<?)"),
        (JobQuery(), JobState.FAILED, "jobs_by_state (state=?"),
        (JobQuery(before=5), JobState.FAILED, "jobs_by_state (state=? AND sequence<?"),
        (JobQuery(operation="a"), JobState.FAILED, "jobs_by_operation (operation=? AND state=?"),
        (JobQuery(labels={"a": "b"}), None, "PRIMARY KEY (name=? AND value=?)"),
        (
            JobQuery(labels={"a": "b", "c": "d"}, before=5),
            None,
            "(name=? AND value=? AND sequence<?",
        ),
        (JobQuery(labels={"a": "b"}, operation="x"), JobState.FAILED, "(name=? AND value=?)"),
    ],
)
def test_lists_walk_an_index_in_the_pages_order(
    database: sqlite3.Connection, query: JobQuery, state: JobState | None, index: str
) -> None:
    sql, _ = list_statement(query, state, 10)
    steps = plan(database, sql)
    assert index in steps[0], steps
    assert not any("TEMP B-TREE" in step for step in steps), steps


def test_every_query_is_explained_and_used() -> None:
    directory = Path(headway.store.sqlite.__file__).parent
    code = "\n".join(path.read_text("utf-8") for path in directory.glob("*.py"))
    for query in QUERIES.values():
        assert len(query.why) > 10, query.name
        used = f'"{query.name}"' in code
        assert used or (query.name.startswith("delete_") and 'f"delete_{part}"' in code), query.name


def steps_of(connection: sqlite3.Connection, sql: str, **values: object) -> int:
    """Virtual machine instructions of a statement: its cost without the noise of a clock."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    connection.set_progress_handler(tick, 1)
    try:
        connection.execute(sql, values).fetchall()
    finally:
        connection.set_progress_handler(None, 0)
    return count


def fill(connection: sqlite3.Connection, first: int, count: int, state: str) -> None:
    """Rows as the store would leave them; `ended` in bulk, because 100,000 lives take a while."""
    ended = state != "PENDING"
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO jobs (id, operation, lane, workspace, created_by, state, wait_reason,"
        " waiting_since_us, priority, created_at_us, ended_at_us, outcome)"
        " VALUES (?, ?, 'long', 'default', 'local', ?, ?, 0, 0, 0, ?, ?)",
        (
            (f"{first + n:026d}", f"op{n % 5}", state, None if ended else "queued",
             n if ended else None, "succeeded" if ended else None)
            for n in range(count)
        ),
    )  # fmt: skip
    connection.execute("COMMIT")


def test_cost_stays_flat_with_a_hundred_thousand_ended_jobs(
    state_dir: StateDir,
) -> None:
    """P18: claim, list, timers and rescue cost the same with 10 and with 100,000 ended jobs."""
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    claim = {"owner": "w", "chosen_json": "[301]", "lease_until_ns": 1, "now_us": 1}
    choice = {"lanes_json": '["long"]', "limit": 4, "now_us": 1}
    page = list_statement(JobQuery(operation="op1"), JobState.SUCCEEDED, 50)
    failed = list_statement(JobQuery(), JobState.FAILED, 50)
    costs: list[list[int]] = []
    with closing(connect_writer(state_dir.database)) as connection:

        def cost(sql: str, **values: object) -> int:
            connection.execute("BEGIN")
            steps = steps_of(connection, sql, **values)
            connection.execute("ROLLBACK")
            return steps

        fill(connection, 0, 300, "SUCCEEDED")
        fill(connection, 10**6, 20, "PENDING")
        for ended in (0, 100_000):
            fill(connection, 10**7, ended, "SUCCEEDED")
            costs.append(
                [
                    cost(QUERIES["ready_lines"].sql, **choice),
                    cost(QUERIES["claim"].sql, **claim),
                    cost(page[0], **page[1]),
                    cost(failed[0], **failed[1]),
                    cost(QUERIES["due"].sql, now_us=10**9, limit=100),
                    cost(QUERIES["lease_over"].sql, now_ns=10**18),
                    cost(
                        QUERIES["ended_before"].sql,
                        before_us=20,
                        workspace=None,
                        besides_json="[]",
                        limit=20,
                    ),
                ]
            )
    few, many = costs
    assert all(after <= 1.5 * before + 10 for before, after in zip(few, many, strict=True)), costs


def test_a_choice_costs_the_same_however_long_the_lines_are(state_dir: StateDir) -> None:
    """P18: one seek finds a line's head, and only as many jobs of it are read as are wanted."""
    state_dir.create()
    ensure_schema(state_dir.database, state_dir.writer_lock)
    costs = []
    with closing(connect_writer(state_dir.database)) as connection:
        for first, count in ((0, 10), (10**6, 50_000)):
            fill(connection, first, count, "PENDING")
            connection.execute("UPDATE jobs SET lock_name = 'gpu'")
            costs.append(
                [
                    steps_of(
                        connection,
                        QUERIES["ready_lines"].sql,
                        lanes_json='["long"]',
                        limit=4,
                        now_us=1,
                    ),
                    steps_of(connection, QUERIES["lock_lines"].sql, lock="gpu", limit=4),
                    steps_of(connection, QUERIES["workspace_pending"].sql, workspace="default"),
                ]
            )
    short, long = costs
    assert all(after <= before + 10 for before, after in zip(short, long, strict=True)), costs

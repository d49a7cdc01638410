"""Between the rows of the queue and `fair_share`, which decides who goes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from headway.store.fair_share import Contention, Job, Line, Rooms, Workspace
from headway.store.limits import LimitBook
from headway.store.sqlite.rows import Row, to_json
from headway.store.sqlite.transaction import Transaction

_LINE_PAGE = 64
"""Jobs of a line that are read at a time when the future is asked for."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What a claim chooses from.

    Attributes:
        timers_due: Timers have run out, and their jobs are not in the lines yet.
        book: The limits that hold.
        lanes: Who wants each lane; those that nobody wants are left out.
        rooms: What the limits leave.
    """

    timers_due: bool
    book: LimitBook
    lanes: dict[str, Contention]
    rooms: Rooms


def survey(transaction: Transaction, lanes: Sequence[str], limit: int) -> Survey:
    """Who wants the lanes, with the first `limit` jobs of each line."""
    (_, timers_due, version, *_), *rows = transaction.all(
        "ready_lines", lanes_json=to_json(lanes), limit=limit, now_us=transaction.now_us
    )
    book = transaction.limits_at(version)
    rooms = rooms_left(transaction, book) if rows else Rooms()
    by_lane: dict[str, list[Row]] = {}
    for row in rows:
        by_lane.setdefault(row[0], []).append(row)
    contentions = {lane: _contention(book, rooms, found) for lane, found in by_lane.items()}
    return Survey(bool(timers_due), book, contentions, rooms)


def lane_future(transaction: Transaction, lane: str) -> tuple[Contention, Rooms]:
    """Who wants a lane, with lines that are read on as far as they are followed."""
    (_, _, version, *_), *rows = transaction.all(
        "ready_lines", lanes_json=to_json([lane]), limit=_LINE_PAGE, now_us=transaction.now_us
    )
    book = transaction.limits_at(version)
    rooms = rooms_left(transaction, book)
    return _contention(book, rooms, rows, _reader(transaction, "ready_more", lane)), rooms


def lock_contention(transaction: Transaction, lock: str, limit: int) -> Contention:
    """Who wants a lock, with the first `limit` jobs of each line."""
    book = transaction.limits()
    rows = transaction.all("lock_lines", lock=lock, limit=limit)
    return _contention(book, rooms_left(transaction, book) if rows else Rooms(), rows)


def lock_future(transaction: Transaction, lock: str) -> tuple[Contention, Rooms]:
    """Who wants a lock, with lines that are read on as far as they are followed."""
    book = transaction.limits()
    rows = transaction.all("lock_lines", lock=lock, limit=_LINE_PAGE)
    rooms = rooms_left(transaction, book)
    return _contention(book, rooms, rows, _reader(transaction, "lock_more", lock)), rooms


def save(transaction: Transaction, resource: str, contention: Contention) -> None:
    """Keep the virtual times that serving has moved on.

    Whoever is alone with a resource, and always was, needs none: there is nobody to be fair to.
    """
    if not contention.served or not contention.is_shared:
        return
    rows: list[tuple[str, str, float, float]] = [("", "", 0.0, contention.clock)]
    for workspace in contention.workspaces:
        users = contention.served.get(workspace.name)
        if users:
            rows.append((workspace.name, "", workspace.tag, workspace.clock))
            rows += [
                (workspace.name, line.user, line.tag, 0.0)
                for line in workspace.lines
                if line.user in users
            ]
    transaction.change("save_shares", resource=resource, shares_json=to_json(rows))


def lane_resource(lane: str) -> str:
    """The name under which a lane's virtual times are kept."""
    return f"lane {lane}"


def lock_resource(lock: str) -> str:
    """The name under which a lock's virtual times are kept."""
    return f"lock {lock}"


def rooms_left(transaction: Transaction, book: LimitBook) -> Rooms:
    """How many more jobs each workspace and user may run."""
    if not book.limits_running:
        return Rooms()
    return _LazyRooms(book, running_totals(transaction))


def running_totals(transaction: Transaction) -> dict[tuple[str, str], int]:
    """Running jobs by (workspace, user), and by (workspace, '')."""
    totals: dict[tuple[str, str], int] = {}
    for workspace, user, jobs in transaction.all("running_totals"):
        totals[workspace, user] = jobs
        totals[workspace, ""] = totals.get((workspace, ""), 0) + jobs
    return totals


class _LazyRooms(Rooms):
    """Rooms that look a limit up when it is asked for: only those who wait matter."""

    def __init__(self, book: LimitBook, running: dict[tuple[str, str], int]) -> None:
        super().__init__()
        self._book = book
        self._running = running

    @property
    def is_unlimited(self) -> bool:
        return False

    def of(self, workspace: str, user: str = "") -> float:
        limit = self._book.max_running(workspace, user)
        if limit is None:
            return float("inf")
        return limit - self._running.get((workspace, user), 0)

    def take(self, workspace: str, user: str) -> None:
        for key in ((workspace, ""), (workspace, user)):
            self._running[key] = self._running.get(key, 0) + 1


def _contention(
    book: LimitBook,
    rooms: Rooms,
    rows: Iterable[Row],
    reader: Callable[[str, str], Callable[[int], list[Job]]] | None = None,
) -> Contention:
    """The contention for one resource; rows of a line stand together, lines of a workspace too."""
    clock = None
    workspaces: list[Workspace] = []
    for (name, user), group in groupby(rows, key=itemgetter(1, 2)):
        line_rows = list(group)
        clock, tag, users_clock, own_tag = line_rows[0][3:7]
        if not workspaces or workspaces[-1].name != name:
            workspaces.append(Workspace(name, tag or 0.0, users_clock or 0.0, book.weight(name)))
        # The statement gives the jobs of a line, not their order.
        jobs = sorted(Job(*row[7:]) for row in line_rows)
        line = Line(user, own_tag or 0.0, jobs, reader and reader(name, user))
        workspaces[-1].lines.append(line)
    return Contention(clock, workspaces, rooms)


def _reader(
    transaction: Transaction, query: str, name: str
) -> Callable[[str, str], Callable[[int], list[Job]]]:
    """Makes for each line the function that reads it on."""

    def reader(workspace: str, user: str) -> Callable[[int], list[Job]]:
        def more(known: int) -> list[Job]:
            rows = transaction.all(
                query, name=name, workspace=workspace, user=user,
                limit=max(_LINE_PAGE, known), offset=known,
            )  # fmt: skip
            return [Job(*row) for row in rows]

        return more

    return reader

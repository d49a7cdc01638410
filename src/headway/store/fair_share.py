"""Who is served next where several workspaces want the same thing. Pure: it decides, others act.

What is wanted is a *resource*: a slot of a lane, or a lock. Between workspaces, and between the
users of a workspace, the choice is start-time fair queueing: each has a *tag*, the virtual time at
which its next job may start; the lowest tag is served, and the tag of who was served moves on by
1/weight. The *clock* of a resource is the lowest tag among those who want it: nobody counts as
being before it, so that time spent idle, or held by a limit, gathers no credit.

Between workspaces only shares count. Within one, the highest priority goes first; among equal
priorities the users take turns; and a user's jobs go in the order of submission.

Source: Goyal, Vin, Cheng, Start-time Fair Queueing (SIGCOMM 1996). With jobs of cost 1, two flows f
and m that both always have work are served within |n_f/w_f - n_m/w_m| <= 1/w_f + 1/w_m of each
other, over any interval.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """A job that waits for the resource; ordered as a user's line is."""

    minus_priority: int
    sequence: int
    operation: str
    lock_name: str | None


class Pick(NamedTuple):
    """Who is served."""

    workspace: str
    user: str
    job: Job


class Rooms:
    """How many more jobs may start, by workspace and by user; without an entry: any number.

    Args:
        left: Keys are (workspace, ''), for the workspace as a whole, and (workspace, user).
    """

    def __init__(self, left: Mapping[tuple[str, str], int] | None = None) -> None:
        self._left = dict(left or {})

    @property
    def is_unlimited(self) -> bool:
        """Whether nobody has a limit."""
        return not self._left

    def of(self, workspace: str, user: str = "") -> float:
        """Room of the workspace, or of one user in it."""
        return self._left.get((workspace, user), math.inf) if self._left else math.inf

    def take(self, workspace: str, user: str) -> None:
        """A job of this user starts."""
        for key in ((workspace, ""), (workspace, user)):
            if key in self._left:
                self._left[key] -= 1


class Line:
    """The waiting jobs of one user in one workspace, best first.

    Args:
        tag: The user's virtual time.
        jobs: The first of them.
        more: Returns those that follow the first so many; None: `jobs` are all.
    """

    def __init__(
        self,
        user: str,
        tag: float,
        jobs: Iterable[Job],
        more: Callable[[int], Sequence[Job]] | None = None,
    ) -> None:
        self.user = user
        self.tag = tag
        self._jobs = deque(jobs)
        self._known = len(self._jobs)
        self._more = more

    @property
    def head(self) -> Job | None:
        """The job that goes next."""
        if not self._jobs and self._more is not None:
            self._jobs.extend(self._more(self._known))
            self._known += len(self._jobs)
            if not self._jobs:
                self._more = None
        return self._jobs[0] if self._jobs else None

    def take(self) -> Job:
        """Serve the head."""
        return self._jobs.popleft()


class Workspace:
    """The lines of one workspace.

    Args:
        tag: The workspace's virtual time at the resource.
        clock: The virtual time among its users.
        weight: Its share in proportion to others', > 0.
    """

    def __init__(self, name: str, tag: float, clock: float, weight: float) -> None:
        self.name = name
        self.tag = tag
        self.clock = clock
        self.weight = weight
        self.lines: list[Line] = []
        self._first: tuple[Line, Job] | None = None
        self._is_known = False

    def first(self, rooms: Rooms) -> tuple[Line, Job] | None:
        """Whose job goes next, if any may; the answer holds until somebody here is served."""
        if not self._is_known:
            self._first = self._best(rooms) if rooms.of(self.name) > 0 else None
            self._is_known = True
        return self._first

    def serve(self, line: Line, rooms: Rooms) -> Job:
        """Start the first job of `line`: virtual times move on, and room gets less."""
        wanting = [max(each.tag, self.clock) for each, _ in self._ready(rooms)]
        self.clock = min(wanting, default=self.clock)
        line.tag = max(line.tag, self.clock) + 1.0
        rooms.take(self.name, line.user)
        self._is_known = False
        return line.take()

    def _best(self, rooms: Rooms) -> tuple[Line, Job] | None:
        return min(
            self._ready(rooms),
            key=lambda each: (
                each[1].minus_priority,
                max(each[0].tag, self.clock),
                each[1].sequence,
            ),
            default=None,
        )

    def _ready(self, rooms: Rooms) -> list[tuple[Line, Job]]:
        return [
            (line, head)
            for line in self.lines
            if (head := line.head) is not None and rooms.of(self.name, line.user) > 0
        ]


class Contention:
    """Everybody who wants one resource now.

    Args:
        clock: Its virtual time; None: nobody ever had to share it, and no tag is kept.
        workspaces: Those with waiting jobs.
        rooms: What limits leave; shared by all resources that are given out in one step.
    """

    def __init__(
        self, clock: float | None, workspaces: Sequence[Workspace], rooms: Rooms | None = None
    ) -> None:
        self.clock = clock or 0.0
        self.workspaces = workspaces
        self.served: dict[str, set[str]] = {}
        self._rooms = rooms or Rooms()
        self._was_shared = clock is not None

    @property
    def is_shared(self) -> bool:
        """Whether tags must be kept: more than one wants it, or did before."""
        lines = sum(len(each.lines) for each in self.workspaces)
        return self._was_shared or lines > 1

    def next(self) -> Pick | None:
        """Serve the one whose turn it is; None when nobody may be served."""
        ready = self._ready()
        if not ready:
            return None
        # Of equal tags the older job goes first: whoever came first to an idle server.
        workspace, (line, _) = min(
            ready, key=lambda each: (max(each[0].tag, self.clock), each[1][1].sequence)
        )
        return self._serve(workspace, line, max(workspace.tag, self.clock))

    def picks(self, count: int) -> Iterator[Pick]:
        """Up to `count` who are served one after another."""
        if self._rooms.is_unlimited and not self.is_shared and self.workspaces:
            # One user is alone here: all is in its line's order. It is what a laptop does.
            [workspace] = self.workspaces
            [line] = workspace.lines
            while count > 0 and line.head is not None:
                yield Pick(workspace.name, line.user, line.take())
                count -= 1
            return
        for _ in range(count):
            pick = self.next()
            if pick is None:
                return
            yield pick

    def charge(self, workspace_name: str, user: str) -> None:
        """Somebody is served whose turn another resource decided."""
        floor = min((max(each.tag, self.clock) for each, _ in self._ready()), default=self.clock)
        for workspace in self.workspaces:
            for line in workspace.lines:
                if (workspace.name, line.user) == (workspace_name, user) and line.head is not None:
                    self._serve(workspace, line, floor)
                    return

    def _ready(self) -> list[tuple[Workspace, tuple[Line, Job]]]:
        rooms = self._rooms
        return [
            (workspace, first)
            for workspace in self.workspaces
            if (first := workspace.first(rooms)) is not None
        ]

    def _serve(self, workspace: Workspace, line: Line, floor: float) -> Pick:
        self.clock = floor
        workspace.tag = max(workspace.tag, floor) + 1.0 / workspace.weight
        self.served.setdefault(workspace.name, set()).add(line.user)
        return Pick(workspace.name, line.user, workspace.serve(line, self._rooms))

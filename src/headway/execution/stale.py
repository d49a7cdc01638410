"""Kills what supervisors that are dead by now have left, wherever it hides (traps 19, 25b).

A forkserver and every job process carry their supervisor's name in the environment that /proc
shows, and so do their descendants unless they were started with another environment. Control groups
find those too; this is for hosts without them.
"""

from __future__ import annotations

from pathlib import Path

from headway.execution.linux import (
    ProcessFacts,
    is_running,
    kill_exactly,
    read_process,
)

OWNER_VARIABLE = "HEADWAY_OWNER"
ROUNDS = 10


def kill_stale() -> list[int]:
    """Kill processes whose owner is dead, round after round until none is found.

    Returns:
        Their pids.
    """
    killed: list[int] = []
    for _ in range(ROUNDS):
        found = [facts.pid for facts in find_stale() if kill_exactly(facts)]
        if not found:
            break
        killed += found
    return killed


def find_stale() -> list[ProcessFacts]:
    """Processes of this user whose owner is dead."""
    owners: dict[str, bool] = {}
    stale = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        # Facts first: were the pid reused in between, its start time would tell.
        facts = read_process(int(entry.name))
        owner = _owner(entry)
        if facts is None or owner is None or not facts.alive:
            continue
        if not owners.setdefault(owner, is_running(owner)):
            stale.append(facts)
    return stale


def _owner(process: Path) -> str | None:
    try:
        environment = (process / "environ").read_bytes()
    except OSError:
        return None
    prefix = f"{OWNER_VARIABLE}=".encode()
    for variable in environment.split(b"\0"):
        if variable.startswith(prefix):
            return variable[len(prefix) :].decode("ascii", "replace")
    return None

"""Follows logs through every restart, and keeps exactly what it was given."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from pathlib import Path

from headway.chaos.evidence import AttemptFiles
from headway.chaos.history import Followed
from headway.client import Client, LogChunk, RetryPolicy
from headway.core.errors import HeadwayError

MOST_AT_ONCE = 8
PATIENCE_S = 120.0
BREAK_OFF = 0.02
"""Chance, with each piece, that a follower breaks off and comes back by position."""
_SUFFIX = ".txt"


class Followers:
    """A thread for each followed job, up to MOST_AT_ONCE.

    Args:
        server: Its URL; it may be away at any time.
        directory: What each was given is written there, a directory a job.
        seed: Decides where followers break off.
    """

    def __init__(self, server: str, directory: Path, seed: int) -> None:
        self._client = Client(server, retry=RetryPolicy(patience_s=PATIENCE_S))
        self._directory = directory
        self._seed = seed
        self._threads: list[threading.Thread] = []
        self._closing = threading.Event()
        self.followed: dict[str, Followed] = {}

    def offer(self, job_id: str) -> None:
        """Follow this job, unless as many are followed as may be."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) >= MOST_AT_ONCE:
            return
        directory = self._directory / job_id
        directory.mkdir(parents=True)
        self.followed[job_id] = followed = Followed(texts=AttemptFiles(directory, _SUFFIX))
        thread = threading.Thread(
            target=self._follow, args=(job_id, followed), name=f"chaos-{job_id}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def finish(self, patience_s: float) -> None:
        """Wait for those who are still reading; then let the rest say that they gave up."""
        for thread in self._threads:
            thread.join(patience_s)
        self._closing.set()
        self._client.close()
        for thread in self._threads:
            thread.join(10.0)

    def _follow(self, job_id: str, followed: Followed) -> None:
        rng = random.Random(f"{self._seed} {job_id}")
        position: str | None = None
        try:
            while not self._closing.is_set():
                position, ended = self._read(job_id, followed, position, rng)
                if ended:
                    return
                followed.resumed += 1
            followed.gave_up = "the run was over"
        except (HeadwayError, RuntimeError) as error:
            followed.gave_up = f"{type(error).__name__}: {error}"

    def _read(
        self, job_id: str, followed: Followed, position: str | None, rng: random.Random
    ) -> tuple[str | None, bool]:
        """Read until the end, or until it breaks off; the position, and whether it was the end."""
        stream = self._client.follow(job_id, since=position)
        for said in _chunks(stream):
            _check_position(followed, position, said)
            self._keep(job_id, said)
            position = said.position
            if rng.random() < BREAK_OFF:
                return position, False
        return position, True

    def _keep(self, job_id: str, chunk: LogChunk) -> None:
        path = self._directory / job_id / f"{chunk.attempt}{_SUFFIX}"
        with path.open("ab") as file:
            file.write(chunk.text.encode())


def _chunks(stream: Iterable[object]) -> Iterable[LogChunk]:
    return (said for said in stream if isinstance(said, LogChunk))


def _check_position(followed: Followed, before: str | None, chunk: LogChunk) -> None:
    """A piece begins where the one before it ended, and its position says how long it is."""
    attempt, offset = _parse(before or "1:0")
    after_attempt, after = _parse(chunk.position)
    begin = offset if chunk.attempt == attempt else 0
    # What is torn in the middle of a character comes as one that stands for the missing rest.
    torn = chunk.text.endswith("\ufffd")
    if (
        after_attempt != chunk.attempt
        or chunk.attempt < attempt
        or (not torn and begin + len(chunk.text.encode()) != after)
    ):
        followed.leaps.append(
            f"was given {len(chunk.text.encode())} bytes between {before or 'the beginning'}"
            f" and {chunk.position}"
        )


def _parse(position: str) -> tuple[int, int]:
    attempt, _, offset = position.partition(":")
    return int(attempt), int(offset)

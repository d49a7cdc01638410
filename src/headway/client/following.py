"""Following a job's log and progress across broken connections and restarted servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from headway.client.errors import ServerUnreachable
from headway.client.event_stream import EventStreamDecoder, ServerSentEvent
from headway.client.models import Job
from headway.client.retrying import Retrier, RetryPolicy, error_from
from headway.client.steps import Call, Lost, Reply
from headway.core.clock import Clock, ns_from_s, s_from_ns

# Three heartbeats of the server (every 10 s): silence for longer is a dead connection.
SILENCE_LIMIT_S = 30.0


@dataclass(frozen=True)
class LogChunk:
    """A piece of an attempt's log, cut anywhere but inside a character.

    Attributes:
        position: Where the log goes on after this piece (`attempt:byte-offset`); pass it as
            `since` to resume exactly here.
    """

    attempt: int
    text: str
    position: str


class FollowCursor:
    """What is known of one followed stream: where it stands and whether it has ended.

    A chunk moves the position in the same step in which it is handed out, and a new connection
    asks for what follows the position: nothing is repeated and nothing skipped.
    """

    def __init__(self, opening: Call, retrier: Retrier, policy: RetryPolicy, clock: Clock) -> None:
        self._opening = opening
        self._retrier = retrier
        self._policy = policy
        self._clock = clock
        self._position: str | None = None
        self._tries = 0
        self._heard_at_ns = clock.monotonic_ns()
        self._decoder = EventStreamDecoder()
        self.ended = False

    def call(self) -> Call:
        """The request that opens the stream, or opens it again where it broke."""
        self._decoder = EventStreamDecoder()
        headers = dict(self._opening.headers) | {"accept": "text/event-stream"}
        if self._position is not None:
            headers["last-event-id"] = self._position
        return Call(
            method="GET",
            path=self._opening.path,
            query=self._opening.query,
            headers=headers,
            read_timeout_s=SILENCE_LIMIT_S,
        )

    def feed(self, data: bytes) -> Iterator[LogChunk | Job]:
        """What the bytes of the stream say: pieces of the log, and the job whenever it changed."""
        self._heard_at_ns = self._clock.monotonic_ns()
        self._tries = 0
        for event in self._decoder.feed(data):
            said = self._take(event)
            if said is not None:
                yield said

    def interrupted(self, answer: Reply | Lost) -> float:
        """Seconds to pause before the stream is opened again.

        Raises:
            Refused: the server does not want to stream this job.
            ServerUnreachable: nothing was heard for longer than the policy's patience.
        """
        self._tries += 1
        pause_s = self._retrier.pause_after(answer, self._tries, repeatable=True)
        silent_s = s_from_ns(self._clock.monotonic_ns() - self._heard_at_ns)
        if pause_s is None:
            raise error_from(answer)
        if ns_from_s(silent_s + pause_s) > ns_from_s(self._policy.patience_s):
            where = "" if self._position is None else f"; the log was read up to {self._position}"
            raise ServerUnreachable(f"{error_from(answer)}{where}")
        return pause_s

    def _take(self, event: ServerSentEvent) -> LogChunk | Job | None:
        if event.event == "log":
            body = json.loads(event.data)
            assert event.id is not None
            self._position = event.id
            return LogChunk(body["attempt"], body["text"], event.id)
        if event.event == "job":
            return Job.model_validate_json(event.data)
        if event.event == "end":
            self.ended = True
        return None

"""When a call is sent again, and how long to wait before: pure decisions."""

from __future__ import annotations

import random
from dataclasses import dataclass

from headway.client.errors import ServerUnreachable, refusal_from
from headway.client.steps import Call, Flow, Lost, Pause, Reply
from headway.core.clock import Clock, ns_from_s, s_from_ns

_BUSY = frozenset({429, 503})


@dataclass(frozen=True)
class RetryPolicy:
    """How patient a client is (trap 24: endless 503 retries; so patience has an end).

    Attributes:
        patience_s: After so long without one usable answer a call gives up.
        first_pause_s: Pause before the first repetition; doubled each time.
        max_pause_s: No pause is longer, a Retry-After of the server apart.
    """

    patience_s: float = 30.0
    first_pause_s: float = 0.1
    max_pause_s: float = 2.0


class Retrier:
    """Sends calls until there is an answer or patience ends."""

    def __init__(self, policy: RetryPolicy, clock: Clock, rng: random.Random) -> None:
        self._policy = policy
        self._clock = clock
        self._rng = rng

    def send(self, call: Call) -> Flow[Reply]:
        """The server's answer to `call`, of a status below 400.

        Raises:
            Refused: the server answered with an error.
            ServerUnreachable: no answer within the policy's patience.
        """
        give_up_at_ns = self._clock.monotonic_ns() + ns_from_s(self._policy.patience_s)
        tries = 0
        while True:
            answer = yield call
            assert isinstance(answer, Reply | Lost)
            if isinstance(answer, Reply) and answer.status < 400:
                return answer
            tries += 1
            pause_s = self.pause_after(answer, tries, call.repeatable)
            left_s = s_from_ns(give_up_at_ns - self._clock.monotonic_ns())
            if pause_s is None or pause_s > left_s:
                raise error_from(answer)
            yield Pause(pause_s)

    def pause_after(self, answer: Reply | Lost, tries: int, repeatable: bool) -> float | None:
        """Seconds until the next try, or None when there must not be one.

        A busy server (429, 503) has refused the call without acting on it, so even a call that
        must not be repeated may be sent again; after a lost connection nobody knows.
        """
        if isinstance(answer, Reply) and answer.status not in _BUSY:
            return None
        if isinstance(answer, Lost) and not repeatable:
            return None
        asked_s = _retry_after_s(answer) if isinstance(answer, Reply) else 0.0
        return max(asked_s, self._backoff_s(tries))

    def _backoff_s(self, tries: int) -> float:
        ceiling = min(
            self._policy.max_pause_s, self._policy.first_pause_s * 2.0 ** min(tries - 1, 16)
        )
        # Full jitter over the upper half: clients that lost one server do not come back as one.
        return ceiling * (0.5 + self._rng.random() / 2)


def error_from(answer: Reply | Lost) -> Exception:
    """The error that an unusable answer becomes when nobody will try again."""
    if isinstance(answer, Reply):
        return refusal_from(answer.status, answer.body)
    return ServerUnreachable(f"the server does not answer: {answer.reason}")


def _retry_after_s(reply: Reply) -> float:
    try:
        return max(0.0, float(reply.headers.get("retry-after", "0")))
    except ValueError:
        # The header may also hold a date; our server never sends one, and backoff covers it.
        return 0.0

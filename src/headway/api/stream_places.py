"""How many live streams each caller has open: one is cheap, some thousand are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headway.access.identity import Identity
from headway.api.problems import Refusal

_RETRY_AFTER_S = "5"


class StreamPlaces:
    """Counts the streams of this process.

    Args:
        most: Streams of one user in one workspace at a time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[tuple[str, str]] = Counter()

    def check(self, caller: Identity) -> None:
        """Ask before the answer begins.

        Raises:
            Refusal: 429; this caller has as many as one may have.
        """
        if self._open[_key(caller)] >= self._most:
            raise Refusal(
                429,
                f"{caller.user} has {self._most} live streams open, the most that one may have;"
                " close some of them",
                headers={"retry-after": _RETRY_AFTER_S},
            )

    @contextmanager
    def held(self, caller: Identity) -> Iterator[None]:
        """Keep a place while the stream runs.

        Apart from `check`, because an answer whose client has gone is never begun, and so never
        ends: a place taken for it would be lost.
        """
        key = _key(caller)
        self._open[key] += 1
        try:
            yield
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


def _key(caller: Identity) -> tuple[str, str]:
    return caller.workspace, caller.user

"""How much one request may ask of the server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes and times of the API.

    Attributes:
        body_bytes: Largest request body; a larger one is answered 413.
        heartbeat_s: A quiet stream sends a comment so often, which keeps proxies from cutting it.
        backup_poll_s: How long a lost doorbell can delay a waiting client.
        tail_bytes: How far back `tail` looks for line ends.
    """

    body_bytes: int = 8 * 1024 * 1024
    heartbeat_s: float = 10.0
    backup_poll_s: float = 1.0
    tail_bytes: int = 8 * 1024 * 1024

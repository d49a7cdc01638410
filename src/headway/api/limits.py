"""How much one request may ask of the server."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.store.limits import QueueLimits


@dataclass(frozen=True)
class ConnectionLimits:
    """What one connection may cost before there is a request that could be refused.

    Attributes:
        most: Connections at a time; less where the system allows fewer open files.
        most_of_one_address: Of one client address that is neither loopback nor a trusted proxy.
        head_bytes: Largest request line and header together; a larger one is answered 431.
        url_bytes: Longest address; a longer one is answered 414.
        header_fields: Most fields of a header.
        head_s: A header must be whole within this time, also the first of a new connection.
        body_s: A body that has taken longer must have come with `body_bytes_per_s`.
        body_bytes_per_s: Slowest body, on the average.
        unread_s: A client that takes nothing of its answer for so long is cut off.
    """

    most: int = 4096
    most_of_one_address: int = 1024
    head_bytes: int = 32 * 1024
    url_bytes: int = 8 * 1024
    header_fields: int = 100
    head_s: float = 20.0
    body_s: float = 30.0
    body_bytes_per_s: int = 1024
    unread_s: float = 600.0


@dataclass(frozen=True)
class Limits:
    """Sizes and times of the API.

    Attributes:
        body_bytes: Largest request body; a larger one is answered 413.
        bodies_bytes: Bodies of all requests at a time; more are answered 503.
        bodies_bytes_of_one: The same of one user in one workspace; more are answered 429.
        heartbeat_s: A quiet stream sends a comment so often, which keeps proxies from cutting it.
        backup_poll_s: How long a lost doorbell can delay a waiting client.
        tail_bytes: How far back `tail` looks for line ends.
        streams_per_user: Live streams that one user may have open in one workspace; more are
            answered 429.
        queue: What may wait, of all workspaces together. The store keeps to it; here it is told.
        connections: How many clients and what they may send.
    """

    body_bytes: int = 8 * 1024 * 1024
    bodies_bytes: int = 256 * 1024 * 1024
    bodies_bytes_of_one: int = 64 * 1024 * 1024
    heartbeat_s: float = 10.0
    backup_poll_s: float = 1.0
    tail_bytes: int = 8 * 1024 * 1024
    streams_per_user: int = 500
    queue: QueueLimits = QueueLimits()  # noqa: RUF009 -- it is frozen
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)

"""From what the wire measured to what a request's progress keeps."""

from __future__ import annotations

from headway.backends.backend import Progress
from headway.core.clock import monotonic_ns
from headway.wire.exchange import Exchange


def carry_over(exchange: Exchange, progress: Progress) -> None:
    """Take over the times of an exchange, complete or not."""
    progress.pool_wait_ns = exchange.pool_wait_ns
    progress.connect_ns = exchange.connect_ns
    progress.tls_ns = exchange.tls_ns
    progress.sent_ns = exchange.sent_ns
    progress.first_byte_ns = exchange.first_byte_ns
    progress.done_ns = exchange.done_ns
    progress.resent = exchange.resent
    if exchange.sent_ns is not None:
        progress.connection_reused = exchange.reused
    if exchange.first_byte_ns is not None:
        progress.response_bytes = exchange.body_bytes


def fail_at_now(progress: Progress) -> None:
    """A request that failed without a whole reply was done when that became known."""
    if progress.done_ns is None:
        progress.done_ns = monotonic_ns()

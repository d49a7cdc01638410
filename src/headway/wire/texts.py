"""Sentences for failures, the same from either transport so that reports can group by them."""

from __future__ import annotations

from headway.wire.exchange import Timeouts

CLOSED_EARLY = "the target closed the connection before the reply was complete"
RESET_EARLY = "the target reset the connection before the reply was complete"
CODING_CUT = "the reply's compressed body ends too early"
SHUT_DOWN = "the transport was shut down"


def no_connection(timeouts: Timeouts) -> str:
    return f"no connection within {_seconds(timeouts.connect_s)}"


def no_first_token(timeouts: Timeouts) -> str:
    return f"no first token within {_seconds(timeouts.first_token_s)}"


def idle(timeouts: Timeouts) -> str:
    return f"nothing more came for {_seconds(timeouts.idle_s)} (idle)"


def no_whole_reply(timeouts: Timeouts) -> str:
    return f"no whole reply within {_seconds(timeouts.total_s)} (total)"


def too_large(max_body_bytes: int) -> str:
    return f"the reply's body is over {max_body_bytes} bytes"


def _seconds(value: float | None) -> str:
    return "unlimited time" if value is None else f"{value:g} s"

"""Why a server should be given no work."""

from __future__ import annotations

from enum import StrEnum


class NotReady(StrEnum):
    """The sentence that `/readyz` answers with."""

    STARTING = "the worker process is starting"
    STOPPING = "the server is stopping"

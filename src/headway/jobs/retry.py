"""How a job asks to be run again."""

from __future__ import annotations

from headway.core.errors import ConfigError


class Retry(Exception):
    """Raise it to give up this attempt and be run again.

    Args:
        after_s: Seconds to wait, >= 0; None leaves it to the job's retry policy.
        reason: Shown to whoever asks why the job waits.
    """

    def __init__(self, after_s: float | None = None, reason: str = "") -> None:
        if after_s is not None and not 0 <= after_s < float("inf"):
            raise ConfigError(f"Retry(after_s={after_s}): give finite seconds >= 0, or None")
        super().__init__(reason or "the operation asked to be run again")
        self.after_s = after_s
        self.reason = reason

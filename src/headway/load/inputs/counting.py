"""Who can count the tokens of a request."""

from __future__ import annotations

from typing import Literal, Protocol

from headway.backends.backend import Call


class TokenCounter(Protocol):
    """Asks the target how many input tokens a request would have."""

    @property
    def source(self) -> Literal["tokenize", "usage", "tokenizer"]:
        """How it finds out; the report names it."""
        ...

    async def count(self, call: Call) -> int:
        """Input tokens of the call sent by itself, all that the backend adds included.

        Raises:
            TargetError: the target did not say.
        """
        ...

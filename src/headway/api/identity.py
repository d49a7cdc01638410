"""Who asks. Every route takes its caller from here and from nowhere else (trap 14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request


@dataclass(frozen=True)
class Identity:
    """An authenticated caller.

    Attributes:
        name: Recorded as the creator of jobs and the author of cancels.
        workspace: The only workspace whose jobs exist for this caller.
    """

    name: str
    workspace: str


LOCAL = Identity(name="local", workspace="default")


async def current_identity(request: Request) -> Identity:
    """The caller of `request`.

    A server on loopback has one user. Nothing that the client sends can change who it is.
    """
    return LOCAL


Caller = Annotated[Identity, Depends(current_identity)]

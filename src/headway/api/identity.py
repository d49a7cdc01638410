"""Who asks. Every route takes its caller from here and from nowhere else (trap 14)."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import Depends, Request
from starlette.types import Scope

from headway.access.identity import Identity

SCOPE_KEY = "headway.identity"


class Authenticator(Protocol):
    """Finds out who sent a request."""

    async def identify(self, scope: Scope) -> Identity:
        """The caller.

        Raises:
            Refusal: 401; it does not say who it is, or not truly. 404; it is not in the workspace
                that it asks for. 429; too many wrong tokens came from its address.
        """
        ...


async def current_identity(request: Request) -> Identity:
    """The caller, as the gate found out before the route was run."""
    identity: Identity = request.scope[SCOPE_KEY]
    return identity


Caller = Annotated[Identity, Depends(current_identity)]

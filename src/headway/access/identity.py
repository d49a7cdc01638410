"""Who asks, as the server found out. Nothing that a client says of itself gets here (trap 14)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from headway.access.roles import Role

Via = Literal["local", "token", "session"]

DEFAULT_WORKSPACE = "default"
LOCAL_USER = "local"
SYSTEM_USER = "system"


@dataclass(frozen=True)
class Identity:
    """An authenticated caller, in one workspace.

    Attributes:
        user: Its name; recorded as the creator of jobs and the author of cancels. A service token
            is `service:NAME`.
        workspace: The only workspace whose jobs exist for this caller; empty when it is in none.
        role: What it may do there.
        administrator: Manages the server, and is an admin of every workspace.
        via: How it showed who it is.
        token_id: The public part of the token that it showed, or that its session began with.
        scraper: May read `/metrics`, and nothing else unless it is a member as well.
        address: The client's, as far as it is known; only noted, never asked.
    """

    user: str
    workspace: str
    role: Role
    administrator: bool = False
    via: Via = "token"
    token_id: str | None = None
    scraper: bool = False
    address: str = field(default="", compare=False)


LOCAL = Identity(LOCAL_USER, DEFAULT_WORKSPACE, Role.ADMIN, administrator=True, via="local")
"""The one user of a server that has no accounts."""

SYSTEM = Identity(SYSTEM_USER, DEFAULT_WORKSPACE, Role.ADMIN, administrator=True, via="local")
"""The server itself, in what it does on its own account."""

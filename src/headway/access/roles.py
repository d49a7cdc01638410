"""What somebody may do inside one workspace."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A member's role; each may do what the ones before it may."""

    NONE = "none"
    """Of somebody who is in no workspace; never a member's."""
    VIEWER = "viewer"
    """Reads everything of the workspace; nobody reads the values of secrets."""
    USER = "user"
    """Also submits, cancels and retries jobs."""
    ADMIN = "admin"
    """Also manages members, service tokens, secrets and limits of the workspace."""

    def covers(self, other: Role) -> bool:
        """Whether this role may do all that `other` may."""
        return _ORDER[self] >= _ORDER[other]

    def capped(self, cap: Role | None) -> Role:
        """The lesser of this role and `cap`; None caps nothing."""
        return self if cap is None or cap.covers(self) else cap


_ORDER = {role: rank for rank, role in enumerate(Role)}

MEMBER_ROLES = (Role.VIEWER, Role.USER, Role.ADMIN)
"""The roles that a member can have."""

"""Names of users, workspaces and tokens."""

from __future__ import annotations

import re

from headway.access.accounts import NAME_PATTERN

_NAME = re.compile(NAME_PATTERN)


def is_name(text: str) -> bool:
    """Whether something can be called so."""
    return _NAME.fullmatch(text) is not None

"""Body templates of the generic HTTP backend: `{name}` in the place of a value."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from headway.core.errors import InputError

# Only a name between braces: the braces of JSON itself never hold one without quotes.
_PLACE = re.compile(r"\{([A-Za-z_]\w*)\}")


class BodyTemplate:
    """A text with places to fill in.

    Args:
        text: For example `{"inputs": "{prompt}", "n": {output_tokens}}`.
    """

    def __init__(self, text: str) -> None:
        # Every second part is a name.
        self._parts = _PLACE.split(text)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._parts[1::2])

    def fill(self, values: dict[str, Any]) -> bytes:
        """The body; strings are JSON-escaped without their quotes, other values are JSON.

        Raises:
            InputError: a place has no value.
        """
        parts = list(self._parts)
        for position in range(1, len(parts), 2):
            name = parts[position]
            if name not in values:
                known = ", ".join(sorted(values)) or "none"
                raise InputError(f"the body template's {{{name}}} has no value; there are: {known}")
            parts[position] = _as_json(values[name])
        return "".join(parts).encode()


def _as_json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text[1:-1] if isinstance(value, str) else text

"""The secrets of one attempt: values that only its own process gets, for as long as it runs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from headway.core.errors import ConfigError
from headway.jobs.masking import Masker


class SecretValues(msgspec.Struct, frozen=True):
    """What an attempt was given.

    Attributes:
        env: By environment variable.
        named: By the secret's name, for `JobContext.secret`.
    """

    env: dict[str, str] = {}
    named: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.env or self.named)

    def __repr__(self) -> str:
        # Structs show their fields; a value must not get into a log by way of a message's text.
        return f"SecretValues({len(self.env)} variables, {len(self.named)} named)"

    def get(self, name: str) -> str:
        """The value of a secret that the operation named.

        Raises:
            ConfigError: this attempt was not given it.
        """
        try:
            return self.named[name]
        except KeyError:
            raise ConfigError(f"this job was not given a secret {name!r}") from None

    def masker(self) -> Masker | None:
        """Takes the values out of what the attempt says; None when there are none."""
        return Masker([*self.env.values(), *self.named.values()]) if self else None


NO_SECRETS = SecretValues()


def merged_names(env: Mapping[str, str], named: tuple[str, ...]) -> tuple[str, ...]:
    """Every secret that a job needs, once."""
    return tuple(dict.fromkeys([*env.values(), *named]))

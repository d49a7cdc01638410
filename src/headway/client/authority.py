"""Whose certificates a client trusts."""

from __future__ import annotations

import os
import ssl

from headway.core.errors import ConfigError

CACERT_VARIABLE = "HEADWAY_CACERT"


def trusted_authorities(cacert: str | None) -> ssl.SSLContext | None:
    """The authority that the argument or HEADWAY_CACERT names, and no other; None: neither does.

    Args:
        cacert: A PEM file with the certificates of authorities.

    Raises:
        ConfigError: the file cannot be used.
    """
    path = cacert or os.environ.get(CACERT_VARIABLE)
    if not path:
        return None
    try:
        context = ssl.create_default_context(cafile=path)
    except ssl.SSLError as error:
        raise ConfigError(f"{path} holds no certificates in PEM form: {error.reason}") from error
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}, named by --cacert or {CACERT_VARIABLE}: {error.strerror}"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context

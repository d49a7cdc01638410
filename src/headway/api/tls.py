"""TLS from certificate files."""

from __future__ import annotations

import logging
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path

from headway.core.errors import ConfigError

_LOG = logging.getLogger("headway.server")


@dataclass(frozen=True)
class TlsFiles:
    """A certificate with the chain that leads to its authority, and its private key; both PEM."""

    cert: Path
    key: Path


class TlsIdentity:
    """The server's certificate, which can be read again when its files were renewed.

    Args:
        files: Where it is.

    Raises:
        ConfigError: a file cannot be read or used, or others can read the key.
    """

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        # One connection, one protocol: without it a client may try what this server cannot speak.
        self.context.set_alpn_protocols(["http/1.1"])
        self._load()
        self._loaded = self._stamps()

    def renew(self) -> bool:
        """Use the files as they are now for new connections, when they have changed.

        A file that cannot be used is logged, and the certificate from before stays in use.
        """
        try:
            stamps = self._stamps()
            if stamps == self._loaded:
                return False
            self._loaded = stamps
            TlsIdentity(self._files)  # a half-written pair must not spoil the context in use
            self._load()
        except ConfigError as error:
            _LOG.warning("the certificate was not renewed: %s", error)
            return False
        _LOG.info("the certificate was renewed from %s", self._files.cert)
        return True

    def _load(self) -> None:
        cert, key = self._files.cert, self._files.key
        _check_private(key)
        try:
            self.context.load_cert_chain(cert, key)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{cert} and {key} are no certificate and its key in PEM form:"
                f" {error.reason or error}"
            ) from error
        except OSError as error:
            raise ConfigError(f"cannot read {cert}: {error.strerror}") from error

    def _stamps(self) -> tuple[tuple[int, int], ...]:
        try:
            states = [path.stat() for path in (self._files.cert, self._files.key)]
        except OSError as error:
            raise ConfigError(f"cannot read the certificate: {error}") from error
        return tuple((state.st_mtime_ns, state.st_ino) for state in states)


def _check_private(key: Path) -> None:
    try:
        mode = key.stat().st_mode
    except OSError as error:
        raise ConfigError(f"cannot read {key}: {error.strerror}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(
            f"the private key {key} can be read by others than its owner; run: chmod 600 {key}"
        )

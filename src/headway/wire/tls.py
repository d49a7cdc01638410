"""TLS towards the target. Verification is on unless it was switched off knowingly (trap 49)."""

from __future__ import annotations

import ssl

import msgspec

from headway.core.errors import ConfigError

_NO_TLS_RECORD = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "HTTP_REQUEST")
"""What OpenSSL calls a peer's first bytes when they are not TLS; which, depends on its version."""


class TlsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to trust, and what to show."""

    verify: bool = True
    ca_file: str | None = None
    """PEM file of the authorities to trust instead of the system's."""
    client_cert: str | None = None
    client_key: str | None = None
    """None: the key is in the certificate's file."""


def make_ssl_context(options: TlsOptions) -> ssl.SSLContext:
    """The context of every connection to one target.

    Raises:
        ConfigError: a file cannot be read or holds no certificate.
    """
    context = ssl.create_default_context(cafile=_readable(options.ca_file, "CA file"))
    # Both transports speak HTTP/1.1 only: with HTTP/2 one connection would carry all the load.
    context.set_alpn_protocols(["http/1.1"])
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if options.client_key and not options.client_cert:
        raise ConfigError("client_key needs client_cert beside it")
    if options.client_cert:
        _load_client_certificate(context, options)
    return context


def _load_client_certificate(context: ssl.SSLContext, options: TlsOptions) -> None:
    cert = _readable(options.client_cert, "client certificate")
    key = _readable(options.client_key, "client key")
    assert cert is not None
    try:
        # An empty password instead of none: OpenSSL would ask on the terminal and never return.
        context.load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            f"cannot use the client certificate {cert}: the file must hold a PEM certificate, "
            f"its key unencrypted there or in client_key ({error})"
        ) from error


def _readable(path: str | None, what: str) -> str | None:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            is_pem = b"-----BEGIN" in file.read()
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror}") from error
    if not is_pem:
        raise ConfigError(f"the {what} {path} holds no PEM data")
    return path


def tls_failure_text(error: ssl.SSLError) -> str:
    """One sentence on why a handshake failed, with what to do about a certificate."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the target's certificate is not trusted ({error.verify_message}); "
            "name its authority's file as ca_file"
        )
    hint = "; does it speak plain http://?" if error.reason in _NO_TLS_RECORD else ""
    return f"the TLS handshake failed ({error.reason or error}){hint}"

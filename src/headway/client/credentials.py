"""The access token of a client: where it comes from, and to whom it is never sent."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from headway.access.tokens import parse
from headway.core.errors import ConfigError

TOKEN_VARIABLE = "HEADWAY_TOKEN"  # noqa: S105 -- the name of a variable
TOKEN_FILE_VARIABLE = "HEADWAY_TOKEN_FILE"  # noqa: S105 -- likewise
WORKSPACE_VARIABLE = "HEADWAY_WORKSPACE"
PLAIN_HTTP_VARIABLE = "HEADWAY_ALLOW_PLAIN_HTTP"
_OTHERS = 0o077


@dataclass(frozen=True)
class Credentials:
    """What a client shows of itself.

    Attributes:
        token: None: it has none, which a server without accounts does not mind.
        workspace: The one it wants to work in; None: the server chooses when there is one only.
    """

    token: str | None = field(default=None, repr=False)
    workspace: str | None = None

    def headers(self) -> dict[str, str]:
        """As headers of every request."""
        headers = {}
        if self.token is not None:
            headers["authorization"] = f"Bearer {self.token}"
        if self.workspace is not None:
            headers["headway-workspace"] = self.workspace
        return headers


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """What `headway login` keeps for a server."""

    server: str
    token: str
    workspace: str | None = None


class LoginFiles:
    """Kept logins: one file a server, readable by its owner only.

    Args:
        directory: Where they are; None: `headway/servers` in the user's configuration.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or _configuration() / "headway" / "servers"

    def find(self, server: str) -> Login | None:
        """The login kept for a server.

        Raises:
            ConfigError: its file can be read by others, or cannot be read at all.
        """
        path = self.path(server)
        try:
            mode = path.stat().st_mode
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}") from error
        if mode & _OTHERS:
            raise ConfigError(
                f"others may read the access token in {path}; revoke it and log in anew"
                f" (or `chmod 600 {path}` if nobody did)"
            )
        try:
            return msgspec.json.decode(content, type=Login)
        except msgspec.DecodeError as error:
            raise ConfigError(f"{path} cannot be understood; log in anew") from error

    def keep(self, login: Login) -> Path:
        """Keep a login; where.

        Raises:
            ConfigError: it cannot be written.
        """
        path = self.path(login.server)
        partial = path.with_suffix(".new")
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial.unlink(missing_ok=True)
            # Never readable by others, not even between its making and a chmod.
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(login))
            partial.replace(path)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error
        return path

    def forget(self, server: str) -> bool:
        """Remove what is kept for a server; whether there was anything."""
        with contextlib.suppress(FileNotFoundError):
            self.path(server).unlink()
            return True
        return False

    def path(self, server: str) -> Path:
        """The file of a server."""
        name = re.sub(r"[^a-z0-9.-]+", "_", server.lower())[:80]
        return self._directory / f"{name}-{hashlib.sha256(server.encode()).hexdigest()[:8]}.json"


def find_credentials(
    server: str,
    token: str | None = None,
    workspace: str | None = None,
    *,
    plain_http: bool = False,
    logins: LoginFiles | None = None,
) -> Credentials:
    """The token and workspace for a server: given, else of the environment, else kept.

    Args:
        server: Its base URL.
        token: Given by the caller.
        workspace: Given by the caller.
        plain_http: Send a token even where everybody on the way can read it.
        logins: Where `headway login` keeps them.

    Raises:
        ConfigError: the token is none, cannot be read, or must not be sent to this server.
    """
    login = (logins or LoginFiles()).find(server) if token is None else None
    found = token or _from_environment()
    if found is None and login is not None:
        found = login.token
    named = workspace or os.environ.get(WORKSPACE_VARIABLE)
    if not named and login is not None:
        named = login.workspace
    if found is not None:
        check_token(found)
        _check_way(server, plain_http)
    return Credentials(found, named or None)


def check_token(token: str) -> None:
    """Refuse what is no access token, before it is sent anywhere.

    Raises:
        ConfigError: it is none; the text does not repeat it.
    """
    if parse(token) is None:
        raise ConfigError(
            "this is not a Headway access token, or not a whole one: they begin with hw_;"
            f" it comes from {TOKEN_VARIABLE}, {TOKEN_FILE_VARIABLE} or `headway login`"
        )


def is_loopback(server: str) -> bool:
    """Whether what is sent to the server stays on this machine."""
    host = urlsplit(server).hostname or ""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _check_way(server: str, plain_http: bool) -> None:
    allowed = plain_http or os.environ.get(PLAIN_HTTP_VARIABLE) == "1"
    if urlsplit(server).scheme == "https" or is_loopback(server) or allowed:
        return
    raise ConfigError(
        f"will not send an access token to {server} without TLS: everybody on the way could read"
        f" it; use https, forward the port (ssh -L), or set {PLAIN_HTTP_VARIABLE}=1 where the"
        " network is trusted"
    )


def _from_environment() -> str | None:
    if token := os.environ.get(TOKEN_VARIABLE):
        return token.strip()
    path = os.environ.get(TOKEN_FILE_VARIABLE)
    if not path:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the token in {path} ({TOKEN_FILE_VARIABLE})") from error


def _configuration() -> Path:
    """The user's configuration, after the XDG base directory specification."""
    base = os.environ.get("XDG_CONFIG_HOME")
    return Path(base) if base else Path("~/.config").expanduser()

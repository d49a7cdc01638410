"""The keys that secrets are sealed with: a file that only the server's user can read."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from headway.access.sealing import KEY_BYTES, Sealer, new_key
from headway.core.errors import ConfigError

FILE_VARIABLE = "HEADWAY_SECRETS_KEY_FILE"
VARIABLE = "HEADWAY_SECRETS_KEY"
_HEADER = "# Headway seals its secrets with the first key; the others open older ones.\n"


class SecretKeys:
    """Reads, makes and changes the keys. Nothing is kept in memory: the file may change.

    Args:
        path: The key file, one key a line in base64, the newest first; made when first needed.
        given: Keys from the environment instead, separated by commas; the file is then not used.
    """

    def __init__(self, path: Path, given: str | None = None) -> None:
        self._path = path
        self._given = given

    @classmethod
    def of_server(cls, state_root: Path, environ: Mapping[str, str]) -> SecretKeys:
        """The keys of the server whose state is in `state_root`."""
        named = environ.get(FILE_VARIABLE)
        path = Path(named).absolute() if named else state_root / "secrets.key"
        return cls(path, environ.get(VARIABLE) or None)

    @property
    def are_given(self) -> bool:
        """Whether they come from the environment and are not ours to change."""
        return self._given is not None

    def sealer(self, *, create: bool = False) -> Sealer:
        """What seals and opens with the keys of now.

        Args:
            create: Make the file with a first key when there is none.

        Raises:
            ConfigError: there is no key, or the file can be read by others or not at all.
        """
        return Sealer(self._keys(create))

    def add_newest(self) -> None:
        """Put a new key before the others.

        Raises:
            ConfigError: the keys are given by the environment, or the file cannot be written.
        """
        if self.are_given:
            raise ConfigError(
                f"the keys come from {VARIABLE}: put a new one before the others there, "
                "start the server again, then rotate"
            )
        self._write([new_key(), *self._keys(create=True)])

    def forget_old(self) -> None:
        """Keep the newest key only; nothing may be sealed with the others any more."""
        if not self.are_given:
            self._write(self._keys(create=False)[:1])

    def _keys(self, create: bool) -> list[bytes]:
        if self._given is not None:
            return _decoded(self._given.split(","), VARIABLE)
        if create and not self._path.exists():
            self._create()
        try:
            self._check_private()
            lines = self._path.read_text("ascii").splitlines()
        except FileNotFoundError:
            raise ConfigError(
                f"there is no key file {self._path}: secrets cannot be opened without it"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read the key file {self._path}: {error}") from None
        return _decoded([each for each in lines if not each.startswith("#")], str(self._path))

    def _check_private(self) -> None:
        mode = self._path.stat().st_mode
        if mode & 0o077:
            raise ConfigError(
                f"others can read the key file {self._path}; chmod 600 it, and rotate the keys if "
                "somebody may have done so"
            )

    def _create(self) -> None:
        # Linked into place: of two that begin at once one makes the key, and it is never half.
        temporary = self._write_beside([new_key()])
        try:
            os.link(temporary, self._path)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()

    def _write(self, keys: Sequence[bytes]) -> None:
        self._write_beside(keys).replace(self._path)

    def _write_beside(self, keys: Sequence[bytes]) -> Path:
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise ConfigError(
                f"cannot write the key file {self._path}: {error.strerror}"
            ) from error
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(_HEADER)
            file.writelines(f"{base64.b64encode(key).decode()}\n" for key in keys)
            file.flush()
            os.fsync(file.fileno())
        return temporary


def _decoded(lines: Sequence[str], where: str) -> list[bytes]:
    """Raises ConfigError; the text shows no key."""
    try:
        keys = [base64.b64decode(line.strip(), validate=True) for line in lines if line.strip()]
    except ValueError:
        keys = [b""]
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise ConfigError(
            f"{where} must hold keys of {KEY_BYTES} random bytes in base64, such as "
            "`openssl rand -base64 32` makes"
        )
    return keys

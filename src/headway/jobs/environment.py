"""Which environment variables a job inherits and which it may set (J10, trap 12)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from headway.core.errors import ConfigError

INHERITED = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "VIRTUAL_ENV",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
)  # fmt: skip
SETTABLE = (
    "APP_*", "JOB_*", "HF_*", "WANDB_*", "MLFLOW_*", "VLLM_*", "CUDA_*", "NCCL_*", "OMP_*",
    "MKL_*", "OPENBLAS_*", "TOKENIZERS_*", "TRANSFORMERS_*", "TORCH_*", "TZ", "LANG", "LC_*",
    "LOG_LEVEL", "DEBUG", "NO_COLOR", "FORCE_COLOR",
)  # fmt: skip
NEVER = (
    "PATH", "LD_*", "DYLD_*", "PYTHON*", "HEADWAY_*", "GLIBC_TUNABLES", "GCONV_PATH", "BASH_ENV",
    "ENV", "IFS", "SHELLOPTS", "TMPDIR", "TEMP", "TMP", "HOME",
)  # fmt: skip
"""Refused whatever the operator allows: they run other code, or are the server's own."""

SECRETS_SETTABLE = ("*_KEY", "*_KEYS", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_CREDENTIALS")
"""Besides the usual ones, variables that a job may fill with a secret. NEVER goes before."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
MAX_VALUE_BYTES = 32 * 1024
MAX_VARIABLES = 100


@dataclass(frozen=True, slots=True)
class EnvironmentPolicy:
    """The operator's allow-lists; names may end in `*`.

    Attributes:
        inherited: Taken over from the server's own environment.
        settable: What a job may set. NEVER is refused even here.
    """

    inherited: tuple[str, ...] = INHERITED
    settable: tuple[str, ...] = SETTABLE

    def base(self, server: Mapping[str, str]) -> dict[str, str]:
        """What a job process starts with, of the server's environment."""
        return {
            name: value
            for name, value in server.items()
            if _matches(name, self.inherited) and not name.startswith("HEADWAY_")
        }

    def check(self, overrides: Mapping[str, str]) -> None:
        """Refuse overrides that a job may not make.

        Raises:
            ConfigError: naming the variable and why; submit shows it to the user.
        """
        if len(overrides) > MAX_VARIABLES:
            raise ConfigError(f"a job may set {MAX_VARIABLES} environment variables at most")
        for name, value in overrides.items():
            _check_one(name, value, self.settable)

    def check_secrets(self, names: Iterable[str]) -> None:
        """Refuse variables that a job may not fill with a secret.

        Raises:
            ConfigError: as for `check`.
        """
        for name in names:
            _check_one(name, "", (*self.settable, *SECRETS_SETTABLE))


def _check_one(name: str, value: str, settable: tuple[str, ...]) -> None:
    if not _NAME.match(name):
        raise ConfigError(f"{name!r} is no name for an environment variable")
    if _matches(name.upper(), NEVER):
        raise ConfigError(f"a job may not set {name}: it belongs to the server")
    if not _matches(name, settable):
        raise ConfigError(
            f"a job may not set {name}: it is not on the allow-list ({', '.join(settable)}); "
            "the operator of the server can add it"
        )
    if "\0" in value or len(value.encode("utf-8", "surrogateescape")) > MAX_VALUE_BYTES:
        raise ConfigError(f"the value of {name} has a NUL or is over {MAX_VALUE_BYTES} bytes")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)

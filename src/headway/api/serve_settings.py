"""How a server is set up: by file, by environment, by flags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import yaml
from pydantic import Field, ValidationError, field_validator, model_validator

from headway.access.roles import Role
from headway.api.fair_use_settings import DEFAULT_CEILINGS, FairUseSettings
from headway.api.known_hosts import KnownHosts
from headway.api.listening import address_of_host
from headway.api.oidc_settings import OidcSettings
from headway.api.tls import TlsFiles
from headway.client.address import DEFAULT_PORT
from headway.core.errors import ConfigError
from headway.core.spec import SpecModel
from headway.core.states import Lane
from headway.dispatch.worker_settings import (
    MIB,
    OWN_WORKER,
    PATIENCE_S,
    LaneOverride,
    RetentionSettings,
    WorkerSettings,
)
from headway.jobs.environment import SETTABLE
from headway.store.limits import QueueLimits


class ServeSettings(SpecModel):
    """Everything about a server; the fields that a worker shares mean the same there.

    Attributes:
        operations: Modules, or paths of .py files, with operations.
        host: Loopback, as long as there are no access tokens.
        port: 0 takes any free one.
        inline_threads: Most threads of the inline lane.
        env_inherited: Variables of the server's own environment that jobs may read, besides the
            usual ones; names may end in `*`.
        env_settable: Environment variables that jobs may set; names may end in `*`.
        data_dir: Where the files have to lie that load tests read on a shared server.
        body_bytes: Largest request body.
        streams_per_user: Live streams that one user may have open in one workspace.
        requests_per_s: That one user may send; null: any number. Not counted on an open server.
        submissions_per_min: Jobs that one workspace may submit; null: any number. Likewise.
        max_queued: Jobs of all workspaces together that may wait; null: any number.
        max_queued_bytes: What was submitted with all these; null: any number.
        priority_ceilings: The highest priority that a `user` and an `admin` may ask for.
        tls_cert: Certificate and chain, PEM; with it the server speaks https only.
        tls_key: Its private key, PEM, readable by nobody else.
        trusted_proxies: Addresses or networks whose `X-Forwarded-For` and `-Proto` are believed.
        allowed_hosts: Host names that clients use for this server, besides its own.
        oidc: An OpenID provider at which people can sign in.
        public_url: Where people reach this server, when a proxy or a name stands in front.
    """

    operations: tuple[str, ...] = Field(min_length=1)
    state_dir: Path
    host: str = "127.0.0.1"
    port: int = Field(default=DEFAULT_PORT, ge=0, le=65535)
    lanes: dict[Lane, LaneOverride] = Field(default_factory=dict)
    burst_reserve_bytes: int | None = Field(default=None, ge=0)
    burst_job_bytes: int = Field(default=256 * MIB, gt=0)
    inline_threads: int = Field(default=128, ge=1, le=10_000)
    lease_s: float = Field(default=15.0, gt=0)
    worker_patience_s: float = Field(default=PATIENCE_S, ge=3)
    drain_s: float = Field(default=30.0, ge=0)
    drain_grace_s: float = Field(default=5.0, ge=0)
    log_bytes: int | None = Field(default=None, gt=0)
    result_bytes: int | None = Field(default=None, ge=1024)
    retention: RetentionSettings = RetentionSettings()
    env_inherited: tuple[str, ...] = ()
    env_settable: tuple[str, ...] = SETTABLE
    data_dir: Path | None = None
    body_bytes: int = Field(default=8 * 1024 * 1024, ge=1024)
    streams_per_user: int = Field(default=500, ge=1)
    requests_per_s: float | None = Field(default=200.0, gt=0)
    submissions_per_min: float | None = Field(default=60_000.0, gt=0)
    max_queued: int | None = Field(default=1_000_000, ge=1)
    max_queued_bytes: int | None = Field(default=16 * 1024**3, ge=1024)
    priority_ceilings: dict[Role, int] = Field(default_factory=lambda: dict(DEFAULT_CEILINGS))
    tls_cert: Path | None = None
    tls_key: Path | None = None
    trusted_proxies: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    oidc: OidcSettings | None = None
    public_url: str | None = Field(default=None, pattern=r"^https?://[^/?#@]+/?$")

    @property
    def queue_limits(self) -> QueueLimits:
        """What may wait, of all workspaces together."""
        return QueueLimits(jobs=self.max_queued, size_bytes=self.max_queued_bytes)

    @field_validator("lanes")
    @classmethod
    def _process_lanes(cls, lanes: dict[Lane, LaneOverride]) -> dict[Lane, LaneOverride]:
        if Lane.INLINE in lanes:
            raise ValueError("the size of the inline lane is inline_threads")
        return lanes

    @model_validator(mode="after")
    def _whole_tls(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together: --tls-cert and --tls-key")
        return self

    def tls_files(self) -> TlsFiles | None:
        """The certificate and its key; None: plain http."""
        if self.tls_cert is None or self.tls_key is None:
            return None
        return TlsFiles(self.tls_cert, self.tls_key)

    @property
    def speaks_in_the_clear(self) -> bool:
        """Whether tokens travel over a network unencrypted, as far as this server can know."""
        loopback = address_of_host(self.host).is_loopback
        return self.tls_cert is None and not loopback and not self.trusted_proxies

    def fair_use(self) -> FairUseSettings:
        """How fast users may ask, and how urgent their jobs may be."""
        return FairUseSettings(
            requests_per_s=self.requests_per_s,
            submissions_per_min=self.submissions_per_min,
            ceilings={**DEFAULT_CEILINGS, **self.priority_ceilings},
        )

    def hosts(self) -> KnownHosts:
        """The names under which the server answers."""
        public = urlsplit(self.public_url).hostname if self.public_url else None
        return KnownHosts(self.host, [*self.allowed_hosts, *([public] if public else [])])

    def worker(self, name: str = OWN_WORKER) -> WorkerSettings:
        """The part that a worker process needs.

        Args:
            name: Of the worker, for metrics.
        """
        return WorkerSettings(
            state_dir=self.state_dir,
            operations=self.operations,
            lanes=self.lanes,
            burst_reserve_bytes=self.burst_reserve_bytes,
            burst_job_bytes=self.burst_job_bytes,
            name=name,
            lease_s=self.lease_s,
            worker_patience_s=self.worker_patience_s,
            drain_s=self.drain_s,
            drain_grace_s=self.drain_grace_s,
            log_bytes=self.log_bytes,
            result_bytes=self.result_bytes,
            retention=self.retention,
            env_inherited=self.env_inherited,
            data_dir=self.data_dir,
        )


def settings_from(
    config: Path | None, flags: Mapping[str, Any], built_in: Sequence[str] = ()
) -> ServeSettings:
    """The settings of a server: a file's, with the flags that were given laid over it.

    Args:
        config: A YAML file, or None.
        flags: Fields by name; None means that the flag was not given.
        built_in: Operation modules that are offered besides those that are asked for.

    Raises:
        ConfigError: a field is wrong; the text names it.
    """
    fields = {} if config is None else _fields_of(config)
    fields.update({name: value for name, value in flags.items() if value not in (None, (), {})})
    fields.setdefault("state_dir", default_state_dir(os.environ))
    asked = fields.setdefault("operations", [])
    if isinstance(asked, list | tuple):
        fields["operations"] = [*(_absolute(str(each)) for each in asked), *built_in]
    try:
        return ServeSettings.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: {first['msg']}") from None


def default_state_dir(environ: Mapping[str, str]) -> Path:
    """Where the state is when nothing else is said, after the XDG base directory specification."""
    base = environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")) / ".local" / "state"
    return Path(base).expanduser() / "headway"


def lane_overrides(texts: Mapping[Lane, str | None]) -> dict[Lane, LaneOverride]:
    """Lane sizes as flags write them: `4` (guaranteed) or `4+2` (guaranteed + burst).

    Raises:
        ConfigError: one is written otherwise.
    """
    return {lane: _lane(lane, text) for lane, text in texts.items() if text is not None}


def _absolute(module: str) -> str:
    # Job processes have another working directory than the person who wrote the path.
    return str(Path(module).absolute()) if module.endswith(".py") else module


def _lane(lane: Lane, text: str) -> LaneOverride:
    guaranteed, plus, burst = text.partition("+")
    try:
        return LaneOverride(guaranteed=int(guaranteed), burst=int(burst) if plus else None)
    except ValueError:
        raise ConfigError(f"--{lane} {text!r}: write 4, or 4+2 for 2 more in bursts") from None


def _fields_of(config: Path) -> dict[str, Any]:
    try:
        loaded = yaml.safe_load(config.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {config}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{config} is not YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{config} must hold names and values")
    return loaded

"""Aiming a run at a registered target: when it is submitted, and again when it starts.

On a shared server nothing else can be measured. A run names the target, or gives a URL that belongs
to it; what could lead it elsewhere (a proxy, another Host, code of its own, files of the server) is
refused.
"""

from __future__ import annotations

from pathlib import Path

from headway.access.urls import Reach, Resolve, pinned_addresses, read_target_url, resolve
from headway.backends.spec import HttpBackendSpec, NullBackendSpec, OpenAIBackendSpec
from headway.core.errors import ConfigError
from headway.jobs.precondition import Condition
from headway.jobs.target import Aim, Range, TargetGrant
from headway.load.spec import FileInputSpec, RunSpec, SyntheticInputSpec, TraceInputSpec
from headway.operations.ceilings import check_ceilings
from headway.operations.files import check_within
from headway.operations.secrets import check_no_secrets, has_key
from headway.operations.target import BenchSettings

_PLAIN_INPUTS = (SyntheticInputSpec, FileInputSpec, TraceInputSpec)
_PLAIN_BACKENDS = (OpenAIBackendSpec, HttpBackendSpec, NullBackendSpec)


def aim(spec: RunSpec, settings: BenchSettings, allowed: Range) -> Aim | None:
    """What a run is aimed at.

    Returns:
        None on a server of one's own, when the target is not one of those registered.

    Raises:
        ConfigError: it may not be aimed there, or not like this.
    """
    if allowed.is_free and allowed.named(spec.target.url) is None:
        return None
    check_no_secrets(spec)
    if isinstance(spec.backend, NullBackendSpec):
        _check_plain(spec, allowed.data_dir)
        return Aim(None, "target null")
    target = allowed.find(spec.target.url)
    check_run(spec, target)
    conditions = (
        [Condition("target_healthy", _question(spec, target), settings.target_wait_s)]
        if settings.target_wait_s
        else []
    )
    secret = () if has_key(spec) or target.secret is None else (target.secret,)
    return Aim(target, f"target {target.lock_group}", conditions, secret)


def check_run(spec: RunSpec, target: TargetGrant) -> None:
    """Refuse a run that could leave its target, or that asks for more than it bears.

    Raises:
        ConfigError: one sentence that says what to leave out.
    """
    data_dir = None if target.data_dir is None else Path(target.data_dir)
    _check_plain(spec, data_dir)
    _check_path(spec)
    check_ceilings(spec, target)


async def pinned(spec: RunSpec, target: TargetGrant, resolver: Resolve = resolve) -> RunSpec:
    """The run with its target's URL and the addresses that it connects to, to its end.

    Raises:
        ConfigError: the run may not go there (any more), or the target's name resolves to where it
            may not.
    """
    check_run(spec, target)
    registered = read_target_url(target.url)
    url = spec.target.url
    if url == target.name:
        url = target.url
    elif not registered.contains(read_target_url(url)):
        raise ConfigError(f"{url} does not belong to the target {target.name!r} any more")
    addresses = await pinned_addresses(registered, Reach(target.reach), resolver)
    changes = {"url": url, "addresses": addresses, "proxy": None}
    return spec.model_copy(update={"target": spec.target.model_copy(update=changes)})


def _question(spec: RunSpec, target: TargetGrant) -> dict[str, object]:
    verify = spec.target.tls.verify and spec.target.tls.ca_file is None
    return {"target": target.name, "any_answer": True, "verify_tls": verify}


def _check_plain(spec: RunSpec, data_dir: Path | None) -> None:
    """Refuse what runs code of the submitter's choice, or reads files of the server's."""
    if not isinstance(spec.backend, _PLAIN_BACKENDS):
        raise ConfigError(
            f"the backend {spec.backend.kind} runs code by its name, which a shared server does "
            "not do for its users; run it here (--local)"
        )
    if not isinstance(spec.inputs, _PLAIN_INPUTS) or _has_plugin(spec):
        raise ConfigError(
            "plug-ins run code by their name, which a shared server does not do for its users; "
            "run it here (--local)"
        )
    if spec.target.proxy is not None:
        raise ConfigError("a shared server goes through no proxy; leave --proxy out")
    if spec.target.api_key_env is not None or spec.target.api_key_file is not None:
        raise ConfigError(
            "a shared server reads no key from its own environment or files; keep it as a secret "
            "(`headway secrets set NAME`) and name that (--api-key-secret NAME)"
        )
    names = {name.lower() for name in spec.target.headers}
    if isinstance(spec.backend, HttpBackendSpec):
        names |= {name.lower() for name in spec.backend.headers}
    if "host" in names:
        raise ConfigError("the Host header says which target is meant; leave it out")
    check_within(spec, data_dir)


def _has_plugin(spec: RunSpec) -> bool:
    stages = getattr(spec.profile, "stages", ())
    profiles = [spec.profile, *(stage.profile for stage in stages)]
    return any(profile.kind == "plugin" for profile in profiles)


def _check_path(spec: RunSpec) -> None:
    """Refuse a backend's path that leads out of what is registered."""
    if not isinstance(spec.backend, HttpBackendSpec):
        return
    path = spec.backend.path.partition("?")[0]
    if path:
        read_target_url(f"http://target/{path.lstrip('/')}")

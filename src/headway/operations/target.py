"""What a run's target is to the queue: a key that one run holds at a time, and a thing to wait for.

A target is a server, not a path on it: two models behind one address share its GPUs, and two runs
at once would measure each other (trap 53).
"""

from __future__ import annotations

import hashlib
import ipaddress

from pydantic import Field

from headway.backends.spec import HttpBackendSpec, NullBackendSpec, PythonBackendSpec
from headway.core.spec import SpecModel
from headway.jobs import Condition
from headway.load.spec import RunSpec
from headway.wire.origin import Origin, parse_origin

MAX_KEY = 200


class BenchSettings(SpecModel):
    """The configuration of a benchmark's job, apart from the run itself.

    Attributes:
        target_wait_s: How long to wait for the target to answer before the job has failed; loading
            a model takes ten minutes and more. 0 does not wait.
    """

    target_wait_s: float = Field(default=1800.0, ge=0)


def target_key(spec: RunSpec) -> str:
    """What runs against the same target have in common, however they write its address.

    Names are not looked up: one server under two names has two keys.

    Raises:
        ConfigError: the target's URL cannot be used.
    """
    match spec.backend:
        case NullBackendSpec():
            key = "target null"
        case PythonBackendSpec(function=function):
            key = f"target {function}"
        case _:
            key = f"target {_address(parse_origin(spec.target.url))}"
    if len(key) <= MAX_KEY:
        return key
    return f"target sha256:{hashlib.sha256(key.encode()).hexdigest()}"


def target_conditions(spec: RunSpec, settings: BenchSettings) -> list[Condition]:
    """Wait until the target answers at all.

    A target behind a proxy, on a socket file, or that is no server is not waited for.

    Raises:
        ConfigError: the target's URL cannot be used.
    """
    if isinstance(spec.backend, NullBackendSpec | PythonBackendSpec) or not settings.target_wait_s:
        return []
    origin = parse_origin(spec.target.url)
    if origin.unix_path is not None or spec.target.proxy is not None:
        return []
    path = origin.path if isinstance(spec.backend, HttpBackendSpec) else "/health"
    arguments = {
        "url": f"{origin.url}{path}",
        "any_answer": True,
        # With a CA of its own it is the run that verifies: the question carries no secret.
        "verify_tls": spec.target.tls.verify and spec.target.tls.ca_file is None,
    }
    return [Condition("target_healthy", arguments, settings.target_wait_s)]


def _address(origin: Origin) -> str:
    if origin.unix_path is not None or not _is_loopback(origin.host):
        return origin.url
    return f"{origin.scheme}://localhost:{origin.port}"


def _is_loopback(host: str) -> bool:
    if host.rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

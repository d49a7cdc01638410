"""The command line of the simulated server."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from headway.core.errors import ConfigError
from headway.sim.options import SimOptions


def parse_arguments(argv: Sequence[str]) -> SimOptions:
    """Read the command line.

    Raises:
        ConfigError: an option is misspelt or its value cannot be.
    """
    given = vars(_parser().parse_args(argv))
    nested: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        section, _, field = name.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[field] = value
    try:
        return SimOptions(**nested)
    except ValidationError as error:
        first = error.errors()[0]
        option = "--" + str(first["loc"][-1]).replace("_", "-")
        raise ConfigError(f"{option}: {first['msg']}") from error


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headway sim",
        description="A simulated inference server that speaks the OpenAI API.",
        allow_abbrev=False,
        argument_default=None,
    )
    listen = parser.add_argument_group("where it listens")
    listen.add_argument("--host", dest="listen.host")
    listen.add_argument("--port", dest="listen.port", type=int, help="0 (default): any free port")
    listen.add_argument("--uds", dest="listen.uds", type=Path, metavar="PATH")
    listen.add_argument("--tls-cert", dest="listen.tls_cert", type=Path, metavar="FILE")
    listen.add_argument("--tls-key", dest="listen.tls_key", type=Path, metavar="FILE")
    listen.add_argument("--api-key", dest="listen.api_key", metavar="KEY")
    exact = parser.add_argument_group("exact mode: tokens at given times")
    exact.add_argument("--ttft", dest="exact.ttft_s", type=_seconds, metavar="SECONDS")
    exact.add_argument("--itl", dest="exact.itl_s", type=_seconds, metavar="SECONDS")
    reply = parser.add_argument_group("the model's replies")
    reply.add_argument("--model", dest="reply.models", action="append", metavar="NAME")
    reply.add_argument("--max-model-len", dest="reply.max_model_len", type=int, metavar="TOKENS")
    parser.add_argument("--fault", dest="faults", action="append", metavar="FAULT")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--die-with-parent", action="store_true", default=None)
    parser.add_argument("--truth-log", type=Path, metavar="FILE")
    return parser


def _seconds(text: str) -> str:
    return text

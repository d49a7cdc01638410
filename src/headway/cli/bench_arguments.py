"""The arguments of `headway bench` as a RunSpec, for whoever composes them without a shell."""

from __future__ import annotations

from collections.abc import Sequence

import click

from headway.cli.bench import bench_command
from headway.cli.bench_spec import build_spec
from headway.cli.spec_options import spec_values
from headway.core.errors import ConfigError
from headway.load.spec import RunSpec


def spec_of(url: str, flags: Sequence[str]) -> RunSpec:
    """What `headway bench URL FLAG...` would run.

    Args:
        url: The target.
        flags: Each `--name=value`; no files are read for them.

    Raises:
        ConfigError: the command would refuse them; the text is the command's own.
    """
    try:
        context = bench_command.make_context("bench", [*flags])
    except click.UsageError as error:
        raise ConfigError(error.format_message()) from error
    with context:
        values = spec_values(context) | {"target.url": url}
        return build_spec({}, values, bench_command.params)

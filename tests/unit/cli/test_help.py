"""What `--help` of every command looks like at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from headway.cli.commands import headway

WIDTH = 80


def commands(command: click.Command, path: str = "headway") -> Iterator[tuple[str, click.Context]]:
    context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
    yield path, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from commands(part, f"{path} {name}")


HELPS = {path: context.get_help() for path, context in commands(headway)}


@pytest.mark.parametrize("path", HELPS)
def test_a_help_says_whole_sentences_and_lists_options_under_headings(path: str) -> None:
    text = HELPS[path]
    cut = [line for line in text.splitlines() if line.endswith("...") and "Usage:" not in line]
    assert not cut
    assert "\\b" not in text, "an escape of click that reached the reader"
    headings = [line for line in text.splitlines() if line and line[0] != " " and line[-1] == ":"]
    assert headings[:1] != ["Other:"]


@pytest.mark.parametrize("path", HELPS)
def test_what_takes_an_argument_says_so_in_its_usage_line_alone(path: str) -> None:
    options = HELPS[path].split("\n\n", 1)[1]
    rows = [line for line in options.splitlines() if line.startswith("  [")]
    assert not rows


def test_removing_is_called_the_same_everywhere() -> None:
    assert not [path for path in HELPS if path.split()[-1] in ("rm", "delete", "del")]

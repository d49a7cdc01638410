"""Options that fill a description: each flag names the field of the spec that it sets.

One table of options serves the command line, the merging with a file (flags win), and error
messages: what the spec refuses is told with the name of the flag that said it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from headway.core.errors import ConfigError

if TYPE_CHECKING:
    import yaml


_UNSECTIONED = "Other"


class SpecOption(click.Option):
    """An option that sets the spec's field at `path` (dotted), shown under `section` in help.

    Args:
        path: Where its value goes, for example `target.model`; None when the command reads it.
        section: The heading under which `--help` lists it.
        convert: Turns the parsed value into the field's value; raises ConfigError.
    """

    def __init__(
        self,
        param_decls: Sequence[str] | None = None,
        *,
        path: str | None = None,
        section: str = "Other",
        convert: Callable[[Any], Any] | None = None,
        **attrs: Any,
    ) -> None:
        super().__init__(param_decls, **attrs)
        self.path = path
        self.section = section
        self.convert = convert


class SectionedCommand(click.Command):
    """A command whose help groups its options under headings and ends with examples."""

    def __init__(self, *args: Any, examples: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            # Arguments stand in the usage line; newer releases of click would list them here too.
            row = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if row is not None:
                section = parameter.section if isinstance(parameter, SpecOption) else _UNSECTIONED
                sections.setdefault(section, []).append(row)
        for section in sorted(sections, key=_UNSECTIONED.__eq__):
            with formatter.section(section if len(sections) > 1 else "Options"):
                formatter.write_dl(sections[section])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.examples:
            return
        with formatter.section("Examples"):
            for line in self.examples.strip().splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line.strip()}\n")


def spec_values(ctx: click.Context) -> dict[str, Any]:
    """The values of the spec options that the user gave, by path. Defaults are not among them.

    Raises:
        ConfigError: a value cannot be converted; the text names the flag.
    """
    values: dict[str, Any] = {}
    for parameter in ctx.command.params:
        if not isinstance(parameter, SpecOption) or parameter.path is None:
            continue
        assert parameter.name is not None
        if ctx.get_parameter_source(parameter.name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[parameter.name]
        if parameter.convert is not None:
            try:
                value = parameter.convert(value)
            except ConfigError as error:
                raise ConfigError(f"{parameter.opts[0]}: {error}") from error
        values[parameter.path] = value
    return values


def overlay(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with each dotted path of `values` set in it; neither argument is changed."""
    merged = _copied(base)
    for path, value in values.items():
        *parents, leaf = path.split(".")
        node = merged
        for name in parents:
            child = node.get(name)
            node[name] = child if isinstance(child, dict) else {}
            node = node[name]
        node[leaf] = {**node[leaf], **value} if _both_mappings(node.get(leaf), value) else value
    return merged


def read_spec_file(file: Path) -> dict[str, Any]:
    """Read a YAML (or JSON) description.

    Raises:
        ConfigError: it cannot be read, or is not a mapping; the text says where.
    """
    import yaml  # Loaded only where a file is given: a tenth of what `headway bench` loads.

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {file}: it is not UTF-8 text") from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{file} is not valid YAML: {_yaml_problem(error)}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{file} must hold a mapping such as `target: {{url: ...}}`")
    return content


def _yaml_problem(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return where + (error.problem or error.context or "it cannot be understood")


def flag_for(path: str, parameters: Iterable[click.Parameter]) -> str | None:
    """The flag that sets the spec's field at `path`, or a part of it."""
    for parameter in parameters:
        if not isinstance(parameter, SpecOption) or parameter.path is None:
            continue
        if path == parameter.path or path.startswith(parameter.path + "."):
            return max(parameter.opts, key=len)
    return None


def key_values(items: Sequence[str]) -> dict[str, str]:
    """`key=value` texts as a mapping.

    Raises:
        ConfigError: an item has no `=`.
    """
    pairs = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ConfigError(f"{item!r} is not KEY=VALUE")
        pairs[key] = value
    return pairs


def key_json_values(items: Sequence[str]) -> dict[str, Any]:
    """`key=value` texts whose values are JSON where they can be read as such, else text."""
    return {key: _json_or_text(value) for key, value in key_values(items).items()}


def headers(items: Sequence[str]) -> dict[str, str]:
    """`Name: value` texts as a mapping.

    Raises:
        ConfigError: an item has no colon.
    """
    pairs = {}
    for item in items:
        name, colon, value = item.partition(":")
        if not colon or not name.strip():
            raise ConfigError(f"{item!r} is not 'Name: value'")
        pairs[name.strip()] = value.strip()
    return pairs


def numbers(text: str) -> list[float]:
    """Comma-separated numbers.

    Raises:
        ConfigError: an item is no number.
    """
    values = []
    for item in text.split(","):
        try:
            values.append(float(item))
        except ValueError as error:
            raise ConfigError(f"{item.strip()!r} is not a number; write for example 1,8,32") from (
                error
            )
    return values


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


def _both_mappings(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict)


def _copied(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _copied(value) if isinstance(value, dict) else value for key, value in mapping.items()
    }

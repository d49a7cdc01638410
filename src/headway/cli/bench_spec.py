"""How the flags of `headway bench` and a file become one RunSpec, or one sentence of advice."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from headway.cli.spec_options import flag_for, overlay
from headway.core.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from headway.load.spec import RunSpec

DEFAULT_STAGE_S = 30.0
"""How long a stage lasts when nobody says when it ends: a sweep of 8 then takes four minutes."""

_PARTS_WITH_KINDS = ("profile", "inputs", "backend")
_TARGETLESS_BACKENDS = ("null", "python", "plugin")


def build_spec(
    from_file: Mapping[str, Any], flags: Mapping[str, Any], parameters: Sequence[click.Parameter]
) -> RunSpec:
    """Make the RunSpec of a file's content and the given flags; flags win.

    Args:
        from_file: A mapping shaped like RunSpec; empty without a file.
        flags: Values by dotted path, as `spec_values` returns them.
        parameters: The command's parameters, to name flags in errors.

    Raises:
        ConfigError: what was asked is impossible; the text names the flags or fields.
    """
    from pydantic import ValidationError

    from headway.load.spec import RunSpec

    _check_parts(from_file)
    base = _without_replaced_parts(from_file, flags)
    merged = overlay(base, {**_implied_kinds(base, flags), **flags})
    _check_turns(merged["inputs"], flags)
    _give_a_target(merged)
    _give_an_end(merged)
    try:
        spec = RunSpec.model_validate(merged)
    except ValidationError as error:
        advice = dict.fromkeys(_explain(detail, parameters) for detail in _causes(error))
        raise ConfigError("; ".join(advice)) from error
    _check_window(spec)
    return spec


def _check_parts(from_file: Mapping[str, Any]) -> None:
    """Refuse what a default would silently take the place of: `profile: constant` is no sweep."""
    for part in _PARTS_WITH_KINDS:
        if not isinstance(from_file.get(part, {}), dict):
            example = f"`{part}: {{kind: {from_file[part]}, ...}}`"
            raise ConfigError(f"{part} must be a mapping such as {example}")


def _check_turns(inputs: Mapping[str, Any], flags: Mapping[str, Any]) -> None:
    """Two flags set the turns of inputs, and each goes with one kind of them."""
    turns, kind = flags.get("inputs.turns"), inputs.get("kind")
    if turns is True and kind == "synthetic":
        raise ConfigError("--turns takes the turns of --data FILE; without it: --synthetic-turns N")
    if isinstance(turns, str) and kind == "file":
        raise ConfigError("--synthetic-turns does not go with --data; --turns sends the file's")


def _check_window(spec: RunSpec) -> None:
    """Refuse a run of which nothing would be measured."""
    lasts_s, cut_s = spec.limits.max_seconds, spec.warmup_s + spec.cooldown_s
    if lasts_s is not None and cut_s >= lasts_s:
        raise ConfigError(
            f"--warmup and --cooldown cut {cut_s:g} s from each stage, which lasts {lasts_s:g} s at"
            " most: nothing would be measured"
        )


def _without_replaced_parts(
    from_file: Mapping[str, Any], flags: Mapping[str, Any]
) -> dict[str, Any]:
    """The file without those parts whose kind a flag changes: their fields belong to the old."""
    return {
        part: value
        for part, value in from_file.items()
        if not (
            part in _PARTS_WITH_KINDS
            and f"{part}.kind" in flags
            and isinstance(value, dict)
            and value.get("kind") != flags[f"{part}.kind"]
        )
    }


def _implied_kinds(base: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Kinds that the given flags imply, where neither a flag nor the file names one."""
    implied = {}
    if _kind(base, flags, "profile") is None:
        in_file = {f"profile.{name}" for name in base.get("profile", {})}
        implied["profile.kind"] = _implied_profile(in_file | flags.keys())
    if _kind(base, flags, "inputs") is None:
        profile = implied.get("profile.kind") or _kind(base, flags, "profile")
        implied["inputs.kind"] = _implied_inputs(flags, profile)
    if _kind(base, flags, "backend") is None:
        implied["backend.kind"] = "plugin" if "backend.name" in flags else "openai-chat"
    return implied


def _implied_inputs(flags: Mapping[str, Any], profile: str | None) -> str:
    if "inputs.name" in flags:
        return "plugin"
    if "inputs.path" not in flags:
        return "synthetic"
    return "trace" if profile == "trace" else "file"


def _implied_profile(paths: Collection[str]) -> str:
    for path, kind in (
        ("profile.slo", "search"),
        ("profile.name", "plugin"),
        ("profile.rate", "poisson"),
        ("profile.streams", "concurrent"),
        ("profile.rate_to", "ramp"),
        ("profile.time_scale", "trace"),
    ):
        if path in paths:
            return kind
    return "sweep"


def _kind(base: Mapping[str, Any], flags: Mapping[str, Any], part: str) -> Any:
    in_base = base.get(part)
    return flags.get(f"{part}.kind") or (in_base.get("kind") if isinstance(in_base, dict) else None)


def _give_a_target(merged: dict[str, Any]) -> None:
    target = merged.setdefault("target", {})
    if isinstance(target, dict) and not target.get("url"):
        if merged["backend"].get("kind") not in _TARGETLESS_BACKENDS:
            raise ConfigError("no target: give a URL, for example http://localhost:8000")
        target["url"] = "none:"


def _give_an_end(merged: dict[str, Any]) -> None:
    """A load that nothing would ever end gets the default duration."""
    limits = merged.setdefault("limits", {})
    if not isinstance(limits, dict):
        return
    if any(limits.get(name) is not None for name in ("max_requests", "max_seconds")):
        return
    schedule_ends = merged["profile"].get("kind") in ("ramp", "trace", "stages")
    inputs_end = merged["inputs"].get("kind") == "file" and not merged["inputs"].get("repeat")
    if not (schedule_ends or inputs_end):
        limits["max_seconds"] = DEFAULT_STAGE_S


def _causes(error: ValidationError) -> Iterator[ErrorDetails]:
    """The errors that are nobody's consequence: a list is also too short once its item is wrong."""
    details = error.errors()
    for detail in details:
        place = detail["loc"]
        inside = (one for one in details if one is not detail and one["loc"][: len(place)] == place)
        if detail["type"] != "too_short" or not any(inside):
            yield detail


def _explain(error: ErrorDetails, parameters: Sequence[click.Parameter]) -> str:
    """One error of the spec as a sentence in the words of the command line."""
    names = [str(name) for name in error["loc"] if not isinstance(name, int)]
    if not names:
        return error["msg"].removeprefix("Value error, ")
    part, kind, *rest = (
        [*names, ""] if names[0] in _PARTS_WITH_KINDS else [names[0], "", *names[1:]]
    )
    path = ".".join(name for name in (part, *rest) if name)
    where = flag_for(path, parameters) or path
    owner = f"{part} {kind}" if kind else "this run"
    if error["type"] == "extra_forbidden":
        takers = ", ".join(_kinds_with_field(part, path.rpartition(".")[2]))
        hint = f"; it goes with {part} {takers}" if takers else _meant(path)
        return f"{owner} takes no {where}{hint}"
    if error["type"] == "missing":
        return f"{owner} needs {where}"
    if error["type"] == "union_tag_invalid":
        known = error["ctx"]["expected_tags"].replace("'", "")
        return f"{where}: there is no {error['ctx']['tag']!r}; there are {known}"
    if error["type"] == "tuple_type":  # Flags are lists by themselves: it stands in a file.
        example = f", for example [{error['input']}]" if isinstance(error["input"], int) else ""
        return f"{path}: must be a list{example}"
    return f"{where}: " + _in_plain_words(error["msg"])


def _meant(path: str) -> str:
    part, _, field = path.rpartition(".")
    names = {name for model in _models_at(part) for name in model.model_fields}
    close = difflib.get_close_matches(field, sorted(names), n=1)
    return f"; is {path.removesuffix(field)}{close[0]} meant?" if close else ""


def _models_at(part: str) -> Iterator[type[BaseModel]]:
    """The models whose fields stand below `part` of a file; none: its top."""
    from pydantic import BaseModel

    from headway.load.spec import RunSpec

    if not part:
        yield RunSpec
    elif part in _PARTS_WITH_KINDS:
        yield from _models_of(part)
    elif part in RunSpec.model_fields:
        model = RunSpec.model_fields[part].annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield model


def _in_plain_words(message: str) -> str:
    message = message.removeprefix("Value error, ")
    for subject in ("Input", "Tuple", "List", "Dictionary", "String"):
        message = message.replace(f"{subject} should ", "must ")
    return message


def _kinds_with_field(part: str, field: str) -> list[str]:
    """The kinds of a part that have this field."""
    return [
        str(kind)
        for model in _models_of(part)
        if field in model.model_fields
        for kind in get_args(model.model_fields["kind"].annotation)
    ]


def _models_of(part: str) -> Iterator[type[BaseModel]]:
    from headway.backends import spec as backends
    from headway.load import spec

    unions = {"profile": spec.Profile, "inputs": spec.InputSpec, "backend": backends.BackendSpec}
    if part in unions:
        yield from get_args(get_args(unions[part])[0])

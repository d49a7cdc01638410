"""The form for a new run; what it will do stands beside it as a command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headway.core.errors import ConfigError, HeadwayError
from headway.dashboard.layout import heading, page, region
from headway.dashboard.reader import Reader
from headway.dashboard.run_fields import DEFAULT_PROFILE, FIELDS, GROUPS, Field, flag_values
from headway.load.spec import RunSpec
from headway.report.html.markup import Markup, tag

SpecOf = Callable[[str, Sequence[str]], RunSpec]
"""Parses a target's address and flags as `headway bench` does."""

_SCHEMES = ("http://", "https://")
_FILES = (".yaml", ".yml", ".json")
"""What the command takes for a file that describes a run."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True)
class Draft:
    """A form as it is filled in.

    Attributes:
        values: By field.
        command: What would do the same in a terminal.
        spec: What would run; None: it cannot.
        problem: Why it cannot.
    """

    values: Mapping[str, str]
    command: str
    spec: RunSpec | None
    problem: str | None


def draft_of(values: Mapping[str, str], server_url: str, spec_of: SpecOf) -> Draft:
    """Reads a form.

    The command line is made of the form and the run of the command line, by the command's own
    parser: what is shown is what happens.
    """
    target = values.get("target", "").strip()
    flags = flag_values(values)
    command = _command(target, flags, server_url)
    if not target:
        return Draft(values, command, None, None)
    try:
        is_name = _NAME.match(target) and not target.endswith(_FILES)
        if not (target.startswith(_SCHEMES) or is_name):
            raise ConfigError(
                "the address begins with http:// or https://, or is the name of a registered target"
            )
        spec = spec_of(target, [f"{flag}={value}" for flag, value in flags])
    except HeadwayError as error:
        return Draft(values, command, None, str(error))
    return Draft(values, command, spec, None)


def _command(target: str, flags: Sequence[tuple[str, str]], server_url: str) -> str:
    first = shlex.join(["headway", "bench", target] if target else ["headway", "bench"])
    if not target:
        first += " URL"
    lines = [first, *(shlex.join(pair) for pair in flags), shlex.join(["--server", server_url])]
    return " \\\n    ".join(lines)


def new_run_page(draft: Draft, reader: Reader, status_text: str | None = None) -> str:
    """The document.

    Args:
        draft: The form as it is filled in.
        reader: Who looks at it.
        status_text: Why the server refused it, when it did.
    """
    form = tag(
        "form",
        [_group(name, fields, draft.values) for name, fields in GROUPS],
        _preview(draft, status_text),
        action="/runs/new",
        method="post",
        id="new-run",
        class_="new-run",
    )
    return page("New run", "/runs/new", heading("New run"), form, reader=reader)


def _group(name: str, fields: Sequence[Field], values: Mapping[str, str]) -> Markup:
    return tag("fieldset", tag("legend", name), [_field(field, values) for field in fields])


def _field(field: Field, values: Mapping[str, str]) -> Markup:
    identity = f"field-{field.name}"
    value = values.get(field.name, "")
    if field.choices:
        control = tag(
            "select",
            [
                tag("option", text, value=choice, selected=choice == value)
                for choice, text in field.choices
            ],
            id=identity,
            name=field.name,
        )
    else:
        control = tag(
            "input", id=identity, name=field.name, value=value, placeholder=field.hint,
            required=field.name == "target", type="text",
            autocomplete="off", spellcheck="false", maxlength=2000,
        )  # fmt: skip
    return tag(
        "div",
        tag("label", field.label, for_=identity),
        control,
        class_="field wide" if field.is_wide else "field",
        data_profiles=" ".join(field.profiles) or None,
    )


def _preview(draft: Draft, status_text: str | None) -> Markup:
    problem = draft.problem or status_text
    return tag(
        "div",
        region("plan", _plan(draft, problem), kind="div", aria_live="polite"),
        tag(
            "div",
            tag("button", "Start the run", class_="button primary", name="do", value="submit"),
            tag("button", "Check", class_="button", name="do", value="check",
                formnovalidate=True, id="check"),
            class_="buttons",
        ),
        class_="preview",
    )  # fmt: skip


def _plan(draft: Draft, problem: str | None) -> list[Markup | None]:
    return [
        tag("h2", "The same in a terminal"),
        tag("pre", tag("code", draft.command), class_="code", id="command", tabindex=0),
        tag("p", problem, class_="problem") if problem else None,
        tag("p", describe(draft.spec), class_="note") if draft.spec else None,
    ]


def describe(spec: RunSpec) -> str:
    """What the run comes to, in a sentence."""
    seconds = spec.limits.max_seconds
    each = f", {seconds:g} s each at most" if seconds else ""
    stages = _stage_count(spec)
    many = f"{stages} stages" if stages > 1 else "1 stage"
    return f"{many}{each}. One run at a time for each target: it waits for its turn."


def _stage_count(spec: RunSpec) -> int:
    profile = spec.profile
    steps = getattr(profile, "steps", None)
    if isinstance(steps, int):
        return steps + 2  # one request at a time, and saturation
    for name in ("rate", "streams"):
        values = getattr(profile, name, None)
        if values:
            return len(values)
    return 1


def form_values(fields: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The fields of a sent form that are known; of several values, the last."""
    values = {name: fields[name][-1] for name in FIELDS if fields.get(name)}
    return {"profile": DEFAULT_PROFILE, **values}

"""What another tool measured, in Headway's names and units; what it does not tell is null."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from headway.core.errors import InputError

MAX_FILE_BYTES = 1 << 30
"""GuideLLM keeps every request in its file; beyond this, reading it whole is no longer wise."""


class ImportedStage(msgspec.Struct, kw_only=True, frozen=True):
    """One load that another tool put on the target."""

    name: str
    values: dict[str, float | None]
    """By the names of the comparison, `ttft_p99_s` for example."""


class ImportedRun(msgspec.Struct, kw_only=True, frozen=True):
    """The result file of another tool."""

    tool: str
    tool_version: str | None
    created: str | None
    target_url: str | None
    model: str | None
    stages: list[ImportedStage]


def read_imported(file: Path) -> ImportedRun:
    """Read a result file of GuideLLM (`benchmarks.json`) or `vllm bench serve --save-result`.

    Raises:
        InputError: it cannot be read, or is of neither tool.
    """
    from headway.interchange import guidellm, vllm

    content = _read_json(file)
    if guidellm.is_ours(content):
        return guidellm.read(content)
    if vllm.is_ours(content):
        return vllm.read(content)
    raise InputError(
        f"{file} is neither a run directory nor a result file of GuideLLM (benchmarks.json) or of "
        "vllm bench serve (--save-result)"
    )


def at(content: Any, *path: str) -> Any:
    """What stands at a path of nested mappings; None where the path ends early."""
    for name in path:
        if not isinstance(content, Mapping):
            return None
        content = content.get(name)
    return content


def number(value: Any, scale: float = 1.0) -> float | None:
    """A value as a number; None when it is none (bools and texts are not)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value * scale


def text(value: Any) -> str | None:
    """A value as text; None when it is none, or empty."""
    return value if isinstance(value, str) and value else None


def numbered(names: list[str]) -> Iterator[str]:
    """Names, the second and later of the same name with their number."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"


def _read_json(file: Path) -> Any:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise InputError(f"{file} is larger than 1 GiB; save the result without its requests")
        # The standard library's reader, because these files may hold NaN and Infinity.
        return json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from error

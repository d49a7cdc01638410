"""The files that a run names. They are not uploaded: a server reads its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from headway.core.errors import InputError
from headway.load.spec import RunSpec

M = TypeVar("M", bound=BaseModel)


def with_absolute_paths(model: M) -> M:
    """The same run with absolute paths, so that it means the same in every directory."""
    changed = {name: _absolute(value) for name, value in model if _has_paths(value)}
    return model.model_copy(update=changed) if changed else model


def check_readable(spec: RunSpec) -> None:
    """Refuse a run whose files this host cannot read.

    Raises:
        InputError: naming the file and what to do.
    """
    for field, path in files_of(spec):
        if not path.is_absolute():
            raise InputError(
                f"{field}: {path} is not an absolute path; a server does not know which directory "
                "you are in"
            )
        if not (path.is_file() and os.access(path, os.R_OK)):
            raise InputError(
                f"{field}: the server has no file {path} that it can read; files are not uploaded, "
                "put it where the server finds it under this path"
            )


def check_within(spec: RunSpec, directory: Path | None) -> None:
    """Refuse a run that reads files outside of a directory.

    Args:
        spec: The run.
        directory: The only place for files; None: there is none.

    Raises:
        InputError: naming the field and what to do.
    """
    for field, path in files_of(spec):
        if directory is None:
            raise InputError(
                f"{field}: this server reads no files for load tests (its operator can name a "
                "data_dir); use synthetic inputs, or run it here (--local)"
            )
        whole = path if path.is_absolute() else directory / path
        # Links are followed first: one that leads out of the directory is outside of it.
        if not whole.resolve().is_relative_to(directory.resolve()):
            raise InputError(f"{field}: {path} is not in {directory}, where this server's data is")
        if not (whole.is_file() and os.access(whole, os.R_OK)):
            raise InputError(f"{field}: there is no file {path} in {directory} that can be read")


def files_of(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Path]]:
    """Every file that the run names, with the dotted name of its field."""
    for name, value in model:
        if isinstance(value, Path):
            yield f"{prefix}{name}", value
        elif isinstance(value, BaseModel):
            yield from files_of(value, f"{prefix}{name}.")


def _has_paths(value: object) -> bool:
    return isinstance(value, Path | BaseModel)


def _absolute(value: Path | BaseModel) -> Path | BaseModel:
    return value.absolute() if isinstance(value, Path) else with_absolute_paths(value)

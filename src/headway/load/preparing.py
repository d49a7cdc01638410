"""The inputs of a run, made ready before its workers are: counted by the target where it can."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from headway.backends.tokens import open_token_counter
from headway.load.inputs import Recipe, prepare
from headway.load.spec import FileInputSpec, PluginInputSpec, RunSpec
from headway.records.record import Note

COUNTING_DEADLINE_S = 20.0
"""A target that is up but does not answer must not keep a run from starting: the run is how one
finds out."""


async def prepare_inputs(
    spec: RunSpec, directory: Path, deadline_s: float = COUNTING_DEADLINE_S
) -> Recipe:
    """Prepare the inputs; without the target's counts when it does not give them in time.

    Raises:
        InputError, ConfigError: the inputs cannot be used.
        TargetError: the target cannot be measured.
    """
    if isinstance(spec.inputs, FileInputSpec | PluginInputSpec):  # Sent as they are.
        return await prepare(spec.inputs, spec.backend, spec.seed, directory)
    try:
        async with asyncio.timeout(deadline_s):
            return await _counted(spec, directory)
    except TimeoutError:
        recipe = await prepare(spec.inputs, spec.backend, spec.seed, directory)
        text = f"The target did not answer the probes that count tokens within {deadline_s:g} s."
        note = Note(topic="prompt_tokens", text=text)
        return msgspec.structs.replace(recipe, notes=(*recipe.notes, note))


async def _counted(spec: RunSpec, directory: Path) -> Recipe:
    counter = await open_token_counter(spec.target, spec.backend)
    try:
        return await prepare(spec.inputs, spec.backend, spec.seed, directory, counter)
    finally:
        if counter is not None:
            await counter.close()

"""Makes a recipe of an input spec (parent) and opens it (worker)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from headway.backends.spec import BackendSpec
from headway.core.errors import ConfigError
from headway.load.inputs.conversation import Inputs
from headway.load.inputs.counting import TokenCounter
from headway.load.inputs.recipe import Recipe, workload_hash
from headway.load.inputs.synthetic import SyntheticInputs
from headway.load.inputs.vocabulary import uncounted_vocabulary
from headway.load.spec import InputSpec, SyntheticInputSpec


async def prepare(
    inputs: InputSpec,
    backend: BackendSpec,
    seed: int,
    work_dir: Path,
    counter: TokenCounter | None = None,
) -> Recipe:
    """Validate the inputs and do once what every worker would otherwise do again.

    Args:
        inputs: What is to be sent.
        backend: What it is sent by; decides which parts of a row are kept.
        seed: The run's seed.
        work_dir: An existing directory that the workers can read; normalised rows go there.
        counter: Asks the target for token counts; None: it has no way to tell.

    Raises:
        InputError: a file is empty or unusable; the text names it and its lines.
        ConfigError: the inputs and the backend or the installed extras do not fit.
    """
    if isinstance(inputs, SyntheticInputSpec):
        spec = inputs.model_dump(mode="json")
        return Recipe(
            spec=spec,
            vocabulary=uncounted_vocabulary(),
            workload_hash=workload_hash(spec),
        )
    raise ConfigError(f"inputs of kind {inputs.kind} are not there yet")


def open_inputs(recipe: Recipe, seed: int, stage: int = 0) -> Inputs:
    """Open prepared inputs for one stage.

    Args:
        recipe: From `prepare`.
        seed: The run's seed.
        stage: The stage's number. No two stages send the same synthetic text, because the second
            would find it in the target's prefix cache.
    """
    spec = recipe.input_spec()
    if isinstance(spec, SyntheticInputSpec):
        return SyntheticInputs(recipe, spec, seed, stage)
    raise ConfigError(f"inputs of kind {spec.kind} are not there yet")


def offsets_ns(recipe: Recipe) -> Sequence[int]:
    """A trace's arrivals in nanoseconds since its first one: ascending, not scaled.

    Raises:
        ConfigError: the inputs are not a trace.
    """
    raise ConfigError("only trace inputs have offsets")

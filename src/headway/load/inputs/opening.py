"""Opens prepared inputs: what a worker needs of this package, and nothing of their preparation."""

from __future__ import annotations

from headway.load.inputs.conversation import Inputs
from headway.load.inputs.recipe import Recipe
from headway.load.inputs.synthetic import SyntheticInputs
from headway.load.spec import FileInputSpec, PluginInputSpec, SyntheticInputSpec, TraceInputSpec


def open_inputs(recipe: Recipe, seed: int, stage: int = 0) -> Inputs:
    """Open prepared inputs for one stage.

    Args:
        recipe: From `prepare`.
        seed: The run's seed.
        stage: The stage's number. No two stages send the same synthetic text, because the second
            would find it in the target's prefix cache.
    """
    spec = recipe.input_spec()
    match spec:
        case SyntheticInputSpec():
            return SyntheticInputs(recipe, spec, seed, stage)
        case FileInputSpec():
            # Imported here: readers of files are a tenth of what a worker would load.
            from headway.load.inputs.conversations_file import FileInputs

            return FileInputs(recipe, spec, seed, stage)
        case TraceInputSpec(format="sessions"):
            from headway.load.inputs.session_inputs import SessionInputs

            return SessionInputs(recipe, spec, seed, stage)
        case TraceInputSpec():
            from headway.load.inputs.trace_inputs import TraceInputs

            return TraceInputs(recipe, spec, seed, stage)
        case PluginInputSpec():
            from headway.load.inputs.plugin import open_plugin_inputs

            return open_plugin_inputs(spec, seed, stage)

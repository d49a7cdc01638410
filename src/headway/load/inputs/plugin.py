"""Content from somebody's own code: what a plug-in of the group `headway.inputs` makes."""

from __future__ import annotations

from typing import Any

from headway.core.errors import ConfigError
from headway.core.plugins import make_plugin
from headway.load.inputs.conversation import Inputs
from headway.load.inputs.recipe import Recipe, workload_hash
from headway.load.inputs.vocabulary import uncounted_vocabulary
from headway.load.spec import PluginInputSpec


def open_plugin_inputs(spec: PluginInputSpec, seed: int, stage: int) -> Inputs:
    """The plug-in's inputs for one stage.

    Raises:
        ConfigError: there is no such plug-in, or it makes no inputs.
    """
    made: Any = make_plugin(
        "headway.inputs", spec.name, options=spec.options, seed=seed, stage=stage
    )
    if not callable(getattr(made, "conversation", None)):
        raise ConfigError(f"inputs {spec.name} made {made!r}, which has no method conversation")
    inputs: Inputs = made
    return inputs


def prepare_plugin(spec: PluginInputSpec, seed: int) -> Recipe:
    """Make the plug-in's inputs once, in the parent, and ask what it knows of itself.

    It may say `conversations` (how many there are) and `content_hash` (what makes two contents
    equal beyond the plug-in's name and options).

    Raises:
        ConfigError: as `open_plugin_inputs`, or its first conversation is none.
    """
    inputs = open_plugin_inputs(spec, seed, 0)
    try:
        if inputs.conversation(0) is None:
            raise ConfigError(f"inputs {spec.name} hold nothing")
        content: str | None = getattr(inputs, "content_hash", None)
        conversations: int | None = getattr(inputs, "conversations", None)
    finally:
        inputs.close()
    parameters = spec.model_dump(mode="json")
    return Recipe(
        spec=parameters,
        vocabulary=uncounted_vocabulary(),
        conversations=conversations,
        workload_hash=workload_hash(parameters, content),
        provenance={"plugin": spec.name},
    )

"""What is sent: synthetic text, files and traces, prepared once and read by every worker."""

from headway.load.inputs.conversation import Conversation, Inputs, Turn
from headway.load.inputs.counting import TokenCounter
from headway.load.inputs.prepare import offsets_ns, open_inputs, prepare
from headway.load.inputs.recipe import Recipe

__all__ = [
    "Conversation",
    "Inputs",
    "Recipe",
    "TokenCounter",
    "Turn",
    "offsets_ns",
    "open_inputs",
    "prepare",
]

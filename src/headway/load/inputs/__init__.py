"""What is sent: synthetic text, files and traces, prepared once and read by every worker.

Preparing is imported when first used: workers only open what the parent has prepared, and should
not wait for readers of files and for calibration to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.load.inputs.conversation import Conversation, Inputs, Turn
from headway.load.inputs.counting import TokenCounter
from headway.load.inputs.opening import open_inputs
from headway.load.inputs.recipe import Recipe

if TYPE_CHECKING:
    from headway.load.inputs.preparation import offsets_ns, prepare

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


def __getattr__(name: str) -> Any:
    if name not in ("offsets_ns", "prepare"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from headway.load.inputs import preparation

    return getattr(preparation, name)

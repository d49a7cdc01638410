"""What a simulated server can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from headway.core.distributions import Constant, Distribution
from headway.core.spec import SpecModel


class ListenOptions(SpecModel):
    """Where and how the server is reached."""

    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    uds: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    accept_delay_s: float = Field(default=0.0, ge=0)
    api_key: str | None = Field(default=None, repr=False)


class ReplyOptions(SpecModel):
    """What the simulated model answers."""

    models: tuple[str, ...] = Field(default=("headway-sim",), min_length=1)
    max_model_len: int = Field(default=131_072, ge=16)
    default_output_tokens: int = Field(default=128, ge=1)
    """The reply's length where the request sets no limit."""
    stop_tokens: Distribution | None = None
    """Where the model would stop by itself; None: at the request's limit."""
    reasoning_tokens: Distribution = Constant(value=0)
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    embedding_dimensions: int = Field(default=64, ge=1)


class ExactOptions(SpecModel):
    """The exact engine's times, in seconds."""

    ttft_s: Distribution = Constant(value=0)
    itl_s: Distribution = Constant(value=0)


class FreezeOptions(SpecModel):
    """When the whole process stands still."""

    at_s: float = Field(ge=0)
    """After the first generation request's arrival."""
    seconds: float = Field(gt=0)


class SimOptions(SpecModel):
    """Everything."""

    listen: ListenOptions = ListenOptions()
    reply: ReplyOptions = ReplyOptions()
    mode: Literal["exact", "modelled"] = "exact"
    exact: ExactOptions = ExactOptions()
    faults: tuple[str, ...] = ()
    freezes: tuple[FreezeOptions, ...] = ()
    seed: int = 0
    truth_log: Path | None = None
    die_with_parent: bool = False

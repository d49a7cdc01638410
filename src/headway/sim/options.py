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
    backlog: int = Field(default=4096, ge=1)
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


class ModelOptions(SpecModel):
    """The modelled engine: its speed and its limits."""

    prefill_tokens_per_s: float = Field(default=20_000.0, gt=0)
    step_base_s: float = Field(default=0.008, gt=0)
    """What every step takes: reading the weights."""
    step_per_sequence_s: float = Field(default=0.000_15, ge=0)
    """What each sequence of the batch adds."""
    max_batch: int = Field(default=64, ge=1)
    max_batched_tokens: int = Field(default=2048, ge=1)
    """Tokens that one step computes at most, of prompts and replies together."""
    kv_capacity_tokens: int = Field(default=131_072, ge=16)
    block_tokens: int = Field(default=16, ge=1)
    prefix_cache: bool = True


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
    model: ModelOptions = ModelOptions()
    faults: tuple[str, ...] = ()
    freezes: tuple[FreezeOptions, ...] = ()
    seed: int = 0
    truth_log: Path | None = None
    die_with_parent: bool = False

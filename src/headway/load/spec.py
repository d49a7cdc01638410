"""What a run is asked to do: the one description behind flags, files, jobs and the Python API.

Everything that a flag of `headway bench` can say, a field here can say, and `run.json` keeps it.
Secrets have no field: an API key is named by the environment variable or file that holds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from headway.backends.spec import BackendSpec, OpenAIBackendSpec, TargetSpec
from headway.core.distributions import Constant, Distribution
from headway.core.errors import ConfigError
from headway.core.spec import SpecModel
from headway.report.conditions import objectives_from, parse_conditions
from headway.report.objectives import ObjectiveSpec

PositiveRate = Annotated[float, Field(gt=0, le=1_000_000)]
Streams = Annotated[int, Field(ge=1, le=100_000)]


# --- what is sent ------------------------------------------------------------------------------


class SyntheticInputSpec(SpecModel):
    """Generated text with a known number of tokens."""

    kind: Literal["synthetic"] = "synthetic"
    prompt_tokens: Distribution = Constant(value=256)
    """Input tokens of the first request as the target counts them; later turns: of the new text."""
    output_tokens: Distribution | None = Constant(value=128)
    lengths: Path | None = None
    """A file of prompt lengths, with output lengths where it has them: rows are drawn at random,
    both lengths together, in place of `prompt_tokens` (and `output_tokens`)."""
    unique_prefix: bool = True
    """Each prompt begins with words of its own, so that no prefix cache hits by accident."""
    prefix_tokens: int = Field(default=0, ge=0)
    """Length of a prefix shared by the prompts of a group, in addition to `prompt_tokens`."""
    prefix_groups: int = Field(default=1, ge=1)
    turns: Distribution = Constant(value=1)
    think_time_s: Distribution = Constant(value=0)
    tokenizer: Path | None = None
    """A local `tokenizer.json`, for targets that cannot count tokens."""


class FileInputSpec(SpecModel):
    """Prompts or conversations from a file."""

    kind: Literal["file"] = "file"
    path: Path
    format: Literal["auto", "jsonl", "csv", "text", "parquet"] = "auto"
    prompt_column: str | None = None
    """None: found by name (prompt, question, text, input, instruction, ...)."""
    output_tokens_column: str | None = None
    turns: bool = False
    """Send every user message of a conversation as a turn; otherwise a row is one request."""
    output_tokens: Distribution | None = None
    """None: as the row says, else not asked."""
    answer_lengths: bool = False
    """Ask for as many output tokens as the row's recorded answer has."""
    think_time_s: Distribution = Constant(value=0)
    """Used where the row's turn has none of its own."""
    unique_prefix: bool = False
    """Put words of its own before each conversation, so that no prefix cache hits."""
    repeat: bool = False
    """Begin again at the end; otherwise the end of the file ends the stage."""
    shuffle: bool = False
    tokenizer: Path | None = None
    """A local `tokenizer.json` for `answer_lengths`; without one, words are counted."""


class TraceInputSpec(SpecModel):
    """Recorded arrivals with their lengths (Mooncake, Azure), sessions of several turns, or bare
    timestamps; text is made.
    """

    kind: Literal["trace"] = "trace"
    path: Path
    format: Literal["auto", "mooncake", "sessions", "azure", "timestamps"] = "auto"
    prompt_tokens: Distribution = Constant(value=256)
    """Used where the trace gives no length."""
    output_tokens: Distribution | None = Constant(value=128)
    block_tokens: int = Field(default=512, ge=1)
    """Tokens that one of a Mooncake trace's `hash_ids` stands for."""
    tokenizer: Path | None = None


class PluginInputSpec(SpecModel):
    """Content made by somebody's own code, by the name of its entry point or as `module:name`."""

    kind: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)


InputSpec = Annotated[
    SyntheticInputSpec | FileInputSpec | TraceInputSpec | PluginInputSpec,
    Field(discriminator="kind"),
]


# --- when it is sent ---------------------------------------------------------------------------


class SynchronousProfile(SpecModel):
    """One request at a time."""

    kind: Literal["synchronous"] = "synchronous"


class ConcurrentProfile(SpecModel):
    """Closed loop: each stream sends its next request when the one before has ended."""

    kind: Literal["concurrent"] = "concurrent"
    streams: tuple[Streams, ...] = Field(min_length=1)
    """Each value is a stage."""


class ThroughputProfile(SpecModel):
    """As many requests in flight as the cap allows."""

    kind: Literal["throughput"] = "throughput"
    cap: Streams = 512


class ConstantProfile(SpecModel):
    """Open loop, evenly spaced."""

    kind: Literal["constant"] = "constant"
    rate: tuple[PositiveRate, ...] = Field(min_length=1)
    """Requests per second; each value is a stage."""
    cap: Streams | None = None
    """Most requests in flight. At the cap a request is sent late, never skipped."""


class PoissonProfile(SpecModel):
    """Open loop, exponential gaps."""

    kind: Literal["poisson"] = "poisson"
    rate: tuple[PositiveRate, ...] = Field(min_length=1)
    cap: Streams | None = None


class GammaProfile(SpecModel):
    """Open loop, gamma-distributed gaps: burstier than Poisson for cv > 1, smoother below."""

    kind: Literal["gamma"] = "gamma"
    rate: tuple[PositiveRate, ...] = Field(min_length=1)
    cv: float = Field(gt=0, le=100)
    """Coefficient of variation of the gaps."""
    cap: Streams | None = None


class RampProfile(SpecModel):
    """Open loop, the rate rising (or falling) linearly over the stage's duration."""

    kind: Literal["ramp"] = "ramp"
    rate_from: float = Field(ge=0)
    rate_to: float = Field(ge=0)
    duration_s: float = Field(gt=0)
    cap: Streams | None = None

    @model_validator(mode="after")
    def _moves(self) -> RampProfile:
        if self.rate_from == 0 and self.rate_to == 0:
            raise ValueError("a ramp from 0 to 0 sends nothing")
        return self


class TraceProfile(SpecModel):
    """Open loop, at the offsets of a trace input."""

    kind: Literal["trace"] = "trace"
    time_scale: float = Field(default=1.0, gt=0)
    """Multiplies the offsets: 0.5 replays twice as fast."""
    cap: Streams | None = None


class PluginProfile(SpecModel):
    """Open loop, at the times that somebody's own arrival process gives."""

    kind: Literal["plugin"] = "plugin"
    name: str = Field(min_length=1)
    """Of its entry point, or `module:name`."""
    options: dict[str, Any] = Field(default_factory=dict)
    cap: Streams | None = None


class SweepProfile(SpecModel):
    """Synchronous, then saturation, then rates between what those two achieved."""

    kind: Literal["sweep"] = "sweep"
    steps: int = Field(default=6, ge=1, le=100)
    """Rates between the two ends."""
    arrivals: Literal["constant", "poisson"] = "poisson"
    saturation_streams: Streams = 128


class SearchProfile(SpecModel):
    """The highest rate at which the target meets its objectives."""

    kind: Literal["search"] = "search"
    slo: str
    """What a stage must meet, for example `ttft p99 < 500ms, tpot p95 < 50ms`."""
    low_rate: PositiveRate | None = None
    """The lowest rate that is tried; None: a tenth of what one request after another achieves."""
    high_rate: PositiveRate | None = None
    """The highest; None: above what the saturated target completes."""
    arrivals: Literal["constant", "poisson"] = "poisson"
    precision: float = Field(default=0.05, ge=0.005, le=1)
    """Share by which one rate lies above the one before."""
    confidence: float = Field(default=0.95, ge=0.5, le=0.99)
    max_stages: int = Field(default=40, ge=3, le=200)
    """Stages after which the search ends with what it knows."""
    saturation_streams: Streams = 128

    @field_validator("slo")
    @classmethod
    def _can_be_read(cls, slo: str) -> str:
        try:
            conditions = parse_conditions(slo)
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if not conditions:
            raise ValueError("an objective is needed, for example 'ttft p99 < 500ms'")
        return slo

    @model_validator(mode="after")
    def _has_a_range(self) -> SearchProfile:
        low, high = self.low_rate, self.high_rate
        if low is not None and high is not None and low >= high:
            raise ValueError(f"the search begins at {low:g}/s, which must lie below {high:g}/s")
        return self


SingleProfile = Annotated[
    SynchronousProfile
    | ConcurrentProfile
    | ThroughputProfile
    | ConstantProfile
    | PoissonProfile
    | GammaProfile
    | RampProfile
    | TraceProfile
    | PluginProfile,
    Field(discriminator="kind"),
]


class StageSpec(SpecModel):
    """One entry of a staged profile; limits that are None come from the run."""

    name: str | None = None
    profile: SingleProfile
    max_requests: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)


class StagesProfile(SpecModel):
    """A list of stages, one after another."""

    kind: Literal["stages"] = "stages"
    stages: tuple[StageSpec, ...] = Field(min_length=1)


Profile = Annotated[
    SynchronousProfile
    | ConcurrentProfile
    | ThroughputProfile
    | ConstantProfile
    | PoissonProfile
    | GammaProfile
    | RampProfile
    | TraceProfile
    | PluginProfile
    | SweepProfile
    | SearchProfile
    | StagesProfile,
    Field(discriminator="kind"),
]


# --- when it ends, and what is good ------------------------------------------------------------


class ErrorRateLimit(SpecModel):
    """Stop when this share of the requests that ended in the window failed."""

    rate: float = Field(gt=0, le=1)
    window_s: float = Field(default=10.0, gt=0)
    minimum_requests: int = Field(default=20, ge=1)


class GoodputLimit(SpecModel):
    """Stop when fewer than this share of the requests that ended in the window were good."""

    share: float = Field(gt=0, le=1)
    window_s: float = Field(default=10.0, gt=0)
    minimum_requests: int = Field(default=20, ge=1)


class SaturationLimit(SpecModel):
    """Stop an open loop whose target falls behind; see `load.saturation`."""

    growth_share: float = Field(default=0.1, gt=0, lt=1)
    """Requests in flight grew by this share of those that were sent."""
    window_s: float = Field(default=10.0, ge=1)
    """The shortest time that is looked at; two and four times as long are looked at too."""


class LimitSpec(SpecModel):
    """Stop rules of each stage. None: that rule is off."""

    max_requests: int | None = Field(default=None, ge=1)
    """Arrivals: single requests, or conversations with all their turns. When all were handed out
    the stage goes on until they have ended."""
    max_seconds: float | None = Field(default=None, gt=0)
    max_errors: int | None = Field(default=None, ge=1)
    max_error_rate: ErrorRateLimit | None = None
    max_consecutive_errors: int | None = Field(default=None, ge=1)
    min_goodput: GoodputLimit | None = None
    """The objectives are broken: too few requests meet them."""
    saturation: SaturationLimit | None = None
    grace_s: float = Field(default=10.0, ge=0)
    """How long requests in flight may go on after a rule, or Ctrl-C, has ended sending."""
    stop_scope: Literal["stage", "run"] = "stage"
    """Whether a rule about errors, goodput or saturation ends its stage only, or the whole run."""


class RunSpec(SpecModel):
    """One load test."""

    target: TargetSpec
    backend: BackendSpec = OpenAIBackendSpec()
    inputs: InputSpec = SyntheticInputSpec()
    profile: Profile = SweepProfile()
    limits: LimitSpec = LimitSpec()
    objectives: ObjectiveSpec = ObjectiveSpec()
    seed: int = Field(default=0, ge=0, lt=2**63)
    workers: int | None = Field(default=None, ge=1, le=256)
    """Load processes; None: one, or more where the asked load needs them and cores are free."""
    warmup_s: float = Field(default=0.0, ge=0)
    """Cut from the start of each stage's numbers, by time."""
    cooldown_s: float = Field(default=0.0, ge=0)
    open_conversations: int | None = Field(default=None, ge=1)
    """Most conversations begun and not ended, thinking ones included."""
    handout_ahead_s: float = Field(default=1.0, ge=0.02, le=60)
    """How far ahead of its due time an arrival is given to a worker."""
    calibrate: bool = True
    capture_text: bool = False
    """Keep the start of each reply in its record."""
    labels: dict[str, str] = Field(default_factory=dict)

    @property
    def judged_by(self) -> ObjectiveSpec:
        """What makes a request good: what was said, else what a search asks of its stages."""
        if isinstance(self.profile, SearchProfile) and not self.objectives.are_set:
            return objectives_from(parse_conditions(self.profile.slo))
        return self.objectives

    @model_validator(mode="after")
    def _fits_together(self) -> RunSpec:
        if isinstance(self.profile, TraceProfile) and not isinstance(self.inputs, TraceInputSpec):
            raise ValueError("profile trace needs trace inputs (--profile trace --data FILE)")
        if self.limits.min_goodput is not None and not self.judged_by.are_set:
            raise ValueError(
                "a lowest goodput needs objectives (--objective 'ttft<500ms,tpot<50ms')"
            )
        return self

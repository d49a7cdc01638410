"""The fields of the new-run form: each is a flag of `headway bench`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OPEN = ("constant", "poisson", "gamma")


@dataclass(frozen=True)
class Field:
    """One field.

    Attributes:
        name: In the form.
        flag: Of the command; empty for the target, which is its argument.
        label: What a person reads.
        hint: An example, or what holds when it is left empty.
        choices: Value and text of each; empty: a text field.
        profiles: Shown with these only; empty: with all.
        is_many: Each of the values, separated by commas, becomes a flag.
        is_wide: Takes the whole width.
    """

    name: str
    flag: str
    label: str
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    profiles: tuple[str, ...] = ()
    is_many: bool = False
    is_wide: bool = False

    def fits(self, profile: str) -> bool:
        """Whether the field belongs to a profile."""
        return not self.profiles or profile in self.profiles


_BACKENDS = (
    ("", "OpenAI chat completions"),
    ("openai-completions", "OpenAI completions"),
    ("openai-responses", "OpenAI responses"),
    ("openai-embeddings", "OpenAI embeddings"),
)
_PROFILES = (
    ("sweep", "Sweep: from one request at a time to saturation"),
    ("search", "Search: the highest rate that meets objectives"),
    ("poisson", "Poisson: open loop, random arrivals"),
    ("constant", "Constant: open loop, even arrivals"),
    ("gamma", "Gamma: open loop, bursty arrivals"),
    ("ramp", "Ramp: open loop, a rising rate"),
    ("concurrent", "Concurrent: closed loop, so many streams"),
    ("synchronous", "Synchronous: one request at a time"),
    ("throughput", "Throughput: as many as the cap allows"),
)

GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    (
        "Target",
        (
            Field("target", "", "Address", "http://localhost:8000", is_wide=True),
            Field("model", "--model", "Model", "the first one that it lists"),
            Field("backend", "--backend", "Protocol", choices=_BACKENDS),
            Field("secret", "--api-key-secret", "API key secret", "its name"),
            Field("key", "--api-key-file", "API key file", "a path on the server"),
        ),
    ),
    (
        "Load",
        (
            Field("profile", "--profile", "Profile", choices=_PROFILES, is_wide=True),
            Field("rate", "--rate", "Requests per second", "10,20,40: each a stage", (), OPEN),
            Field("cv", "--cv", "Variation of the gaps", "2", (), ("gamma",)),
            Field("from", "--ramp-from", "First rate", "1", (), ("ramp",)),
            Field("to", "--ramp-to", "Last rate", "50", (), ("ramp",)),
            Field("over", "--ramp-duration", "Over", "60s", (), ("ramp",)),
            Field("streams", "--streams", "Streams", "1,8,32: each a stage", (), ("concurrent",)),
            Field("slo", "--slo", "Must hold", "ttft p99 < 500ms, tpot p95 < 50ms", (),
                  ("search",), is_wide=True),
            Field("lowest", "--search-from", "Lowest rate", "a tenth of one by one", (),
                  ("search",)),
            Field("highest", "--search-to", "Highest rate", "above saturation", (), ("search",)),
            Field("steps", "--sweep-steps", "Rates between", "6", (), ("sweep",)),
            Field("saturation", "--saturation-streams", "Streams at saturation", "128", (),
                  ("sweep", "search")),
            Field("cap", "--cap", "Most in flight", "no limit", (), (*OPEN, "throughput")),
            Field("seconds", "--max-seconds", "Each stage lasts", "30s"),
            Field("requests", "--max-requests", "Requests of a stage", "no limit"),
            Field("warmup", "--warmup", "Warm-up", "0s"),
        ),
    ),
    (
        "Requests",
        (
            Field("input", "--input", "Prompt tokens", "256, 512±128, 64..256"),
            Field("output", "--output", "Reply tokens", "128"),
            Field("prefix", "--shared-prefix", "Shared prefix, tokens", "0"),
            Field("turns", "--synthetic-turns", "Turns", "1"),
            Field("objective", "--objective", "Objectives", "ttft<500ms,tpot<50ms"),
            Field("error_rate", "--max-error-rate", "Stop at this error rate", "5%/10s"),
            Field("seed", "--seed", "Seed", "0"),
        ),
    ),
    (
        "Job",
        (
            Field("name", "--label", "Name", "shown in the list"),
            Field("labels", "--label", "Labels", "team=serving, gpu=h100", is_many=True),
        ),
    ),
)  # fmt: skip

FIELDS = {field.name: field for _, fields in GROUPS for field in fields}
DEFAULT_PROFILE = "sweep"


def flag_values(values: Mapping[str, str]) -> list[tuple[str, str]]:
    """The flags that the filled fields stand for, in the order of the form."""
    profile = values.get("profile") or DEFAULT_PROFILE
    flags: list[tuple[str, str]] = []
    for field in FIELDS.values():
        value = values.get(field.name, "").strip()
        if not (value and field.flag and field.fits(profile)):
            continue
        if field.name == "profile" and value == DEFAULT_PROFILE:
            continue
        if field.name == "name":
            value = f"name={value}"
        parts = value.split(",") if field.is_many else [value]
        flags.extend((field.flag, part.strip()) for part in parts if part.strip())
    return flags

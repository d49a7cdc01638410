from __future__ import annotations

import shlex

import pytest

from headway.cli.bench import bench_command
from headway.cli.bench_arguments import spec_of
from headway.cli.spec_options import SpecOption
from headway.dashboard.new_run import Draft, draft_of
from headway.dashboard.run_fields import FIELDS
from headway.load.spec import PoissonProfile, SweepProfile, SyntheticInputSpec

SERVER = "http://127.0.0.1:8484"
TARGET = "http://localhost:8000"


def draft(**values: str) -> Draft:
    return draft_of({"target": TARGET, **values}, SERVER, spec_of)


def test_the_command_shown_makes_the_run_that_is_started() -> None:
    """What is pasted into a terminal and what the button starts are one and the same."""
    made = draft(
        profile="poisson", rate="10,20", seconds="5s", input="512±128", objective="ttft<500ms",
        name="it's <mine>", labels="team=a b, gpu=h100", seed="7", steps="3",
    )  # fmt: skip
    assert made.problem is None
    words = shlex.split(made.command.replace("\\\n", " "))
    assert words[:3] == ["headway", "bench", TARGET]
    assert words[-2:] == ["--server", SERVER]
    pairs = zip(words[3:-2:2], words[4:-2:2], strict=True)
    assert spec_of(TARGET, [f"{flag}={value}" for flag, value in pairs]) == made.spec
    assert made.spec is not None
    assert made.spec.profile == PoissonProfile(rate=(10, 20))
    assert made.spec.labels == {"name": "it's <mine>", "team": "a b", "gpu": "h100"}
    assert made.spec.seed == 7


def test_an_empty_form_is_the_plain_command() -> None:
    made = draft()
    assert made.command == f"headway bench {TARGET} \\\n    --server {SERVER}"
    assert made.spec is not None
    assert made.spec.profile == SweepProfile()
    assert made.spec.inputs == SyntheticInputSpec()


def test_fields_of_another_profile_are_left_out() -> None:
    assert "--rate" not in draft(profile="sweep", rate="10").command
    assert "--slo 'ttft p99 < 500ms'" in draft(profile="search", slo="ttft p99 < 500ms").command
    assert "--sweep-steps" not in draft(profile="concurrent", streams="4", steps="9").command


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seed": "--local"}, "not a valid integer"),
        ({"profile": "poisson"}, "--rate"),
        ({"labels": "no equals"}, "KEY=VALUE"),
        ({"target": "/etc/passwd"}, "http://"),
        ({"target": "run.yaml"}, "http://"),
    ],
)
def test_what_the_command_would_refuse_is_said_in_its_words(
    values: dict[str, str], sentence: str
) -> None:
    made = draft(**values)
    assert made.spec is None
    assert sentence in (made.problem or "")


def test_a_value_that_looks_like_a_flag_stays_a_value() -> None:
    made = draft(model="--api-key-file")
    assert made.spec is not None
    assert made.spec.target.model == "--api-key-file"
    assert made.spec.target.api_key_file is None


def test_every_field_is_a_flag_of_the_command() -> None:
    flags = {
        flag
        for parameter in bench_command.params
        if isinstance(parameter, SpecOption)
        for flag in parameter.opts
    }
    assert {field.flag for field in FIELDS.values() if field.flag} <= flags

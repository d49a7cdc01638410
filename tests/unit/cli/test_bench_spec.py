"""Flags and files become one RunSpec; what is impossible is said in the words of the flags."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from pydantic import BaseModel

from headway.backends.spec import BackendSpec
from headway.cli.bench_options import bench_options
from headway.cli.bench_spec import DEFAULT_STAGE_S, build_spec
from headway.cli.spec_options import SectionedCommand, read_spec_file, spec_values
from headway.core.errors import ConfigError
from headway.load.spec import InputSpec, Profile, RunSpec

URL = {"target": {"url": "http://localhost:8000"}}


@pytest.fixture
def spec_of() -> Callable[..., RunSpec]:
    """Parses a command line as `headway bench` does and returns its spec."""

    def parse(*arguments: str, from_file: dict[str, Any] | None = None) -> RunSpec:
        specs: list[RunSpec] = []

        @click.command(cls=SectionedCommand)
        @bench_options
        @click.pass_context
        def bench(ctx: click.Context, **_: Any) -> None:
            file = URL if from_file is None else from_file
            specs.append(build_spec(file, spec_values(ctx), ctx.command.params))

        bench.main(list(arguments), standalone_mode=False)
        return specs[0]

    return parse


def test_a_bare_url_is_a_sweep_with_synthetic_prompts_and_an_end(spec_of: Any) -> None:
    spec = spec_of()
    assert spec.profile.kind == "sweep"
    assert spec.inputs.kind == "synthetic"
    assert spec.limits.max_seconds == DEFAULT_STAGE_S


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("--rate", "20"), "poisson"),
        (("--streams", "1,8"), "concurrent"),
        (("--ramp-from", "1", "--ramp-to", "9", "--ramp-duration", "1m"), "ramp"),
    ],
)
def test_a_flag_that_belongs_to_one_profile_implies_it(
    spec_of: Any, arguments: tuple[str, ...], kind: str
) -> None:
    assert spec_of(*arguments).profile.kind == kind


def test_several_values_of_a_flag_arrive_in_order(spec_of: Any) -> None:
    assert spec_of("--streams", "1,8,32").profile.streams == (1, 8, 32)


def test_flags_win_over_the_file(spec_of: Any) -> None:
    file = {**URL, "profile": {"kind": "constant", "rate": [5], "cap": 3}, "seed": 1}
    spec = spec_of("--rate", "9", from_file=file)
    assert (spec.profile.kind, spec.profile.rate, spec.profile.cap) == ("constant", (9.0,), 3)
    assert spec.seed == 1


def test_a_flag_that_changes_a_kind_replaces_that_part_of_the_file(spec_of: Any) -> None:
    file = {**URL, "profile": {"kind": "gamma", "rate": [5], "cv": 2}}
    spec = spec_of("--profile", "synchronous", from_file=file)
    assert spec.profile.kind == "synchronous"


def test_nothing_that_was_not_given_overrides_the_file(spec_of: Any) -> None:
    file = {**URL, "backend": {"kind": "openai-chat", "stream": False}, "calibrate": False}
    spec = spec_of(from_file=file)
    assert spec.backend.stream is False
    assert spec.calibrate is False


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (
            ("--profile", "synchronous", "--rate", "2"),
            "profile synchronous takes no --rate; it goes with profile constant, poisson, gamma",
        ),
        (("--profile", "gamma", "--rate", "2"), "profile gamma needs --cv"),
        (("--input", "many"), "--input: cannot read 'many' as a distribution"),
        (("--rate", "fast"), "--rate: 'fast' is not a number"),
        (("--streams", "1.5"), "--streams: '1.5' must be whole numbers"),
        (("--max-seconds", "1 week"), "--max-seconds: '1 week' is not a duration"),
        (("--objective", "p99<1s"), "--objective: 'p99<1s' is not an objective"),
        (("--header", "nonsense"), "--header: 'nonsense' is not 'Name: value'"),
        (("--data", "x.jsonl", "--input", "5"), "inputs file takes no --input"),
        (("--profile", "trace"), "profile trace needs trace inputs"),
        (("--rate", "2", "--max-seconds", "0"), "--max-seconds: must be greater than 0"),
        (("--objective", "ttft<500"), "--objective: 'ttft<500' has no unit"),
        (("--turns",), "--turns takes the turns of --data FILE"),
        (("--data", "x.jsonl", "--synthetic-turns", "3"), "--turns sends the file's"),
        (("--rate", "2", "--warmup", "4s", "--cooldown", "1s", "--max-seconds", "5s"), "nothing"),
    ],
)
def test_what_is_impossible_is_told_with_the_flag_and_what_would_be_valid(
    spec_of: Any, arguments: tuple[str, ...], advice: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        spec_of(*arguments)
    assert advice in str(refusal.value)


def test_a_misspelt_field_of_the_file_is_named(spec_of: Any) -> None:
    with pytest.raises(ConfigError, match="takes no targt; is target meant"):
        spec_of(from_file={**URL, "targt": {}})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"profile": {"kind": "poisson", "rates": [2]}}, "profile.rates; is profile.rate meant?"),
        ({"limits": {"max_second": 3}}, "limits.max_second; is limits.max_seconds meant?"),
        ({"target": {**URL["target"], "modle": "m"}}, "target.modle; is target.model meant?"),
        ({"profile": {"kind": "poisson", "rate": 20}}, "rate: must be a list, for example [20]"),
        ({"profile": {"kind": "poisson", "rate": "fast"}}, "profile.rate: must be a list"),
    ],
)  # fmt: skip
def test_a_wrong_field_within_a_part_of_the_file_is_told_with_the_right_one(
    spec_of: Any, content: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        spec_of(from_file={**URL, **content})
    assert said in str(refusal.value)


def test_an_error_says_only_what_is_wrong_and_not_what_follows_from_it(spec_of: Any) -> None:
    with pytest.raises(ConfigError) as refusal:
        spec_of("--rate", "-5")
    assert str(refusal.value) == "--rate: must be greater than 0"


@pytest.mark.parametrize("part", ["profile", "inputs", "backend"])
def test_a_part_of_the_file_that_is_no_mapping_is_not_replaced_by_the_default(
    spec_of: Any, part: str
) -> None:
    with pytest.raises(ConfigError, match=f"{part} must be a mapping"):
        spec_of(from_file={**URL, part: "constant"})


def test_a_kind_that_there_is_not_is_told_with_those_that_there_are(spec_of: Any) -> None:
    with pytest.raises(ConfigError, match="profile: there is no 'poison'; there are synchronous"):
        spec_of(from_file={**URL, "profile": {"kind": "poison"}})


def test_a_rate_implies_its_profile_in_a_file_as_it_does_as_a_flag(spec_of: Any) -> None:
    assert spec_of(from_file={**URL, "profile": {"rate": [5]}}).profile.kind == "poisson"


def test_without_a_target_the_error_says_what_to_give(spec_of: Any) -> None:
    with pytest.raises(ConfigError, match="give a URL"):
        spec_of(from_file={})


def test_the_null_backend_needs_no_target(spec_of: Any) -> None:
    assert spec_of("--backend", "null", from_file={}).backend.kind == "null"


def test_objectives_and_error_rates_read_as_people_write_them(spec_of: Any) -> None:
    spec = spec_of("--objective", "ttft<500ms,tpot<50ms", "--max-error-rate", "5%/20s")
    assert (spec.objectives.ttft_s, spec.objectives.tpot_s) == (0.5, 0.05)
    assert spec.limits.max_error_rate.rate == pytest.approx(0.05)
    assert spec.limits.max_error_rate.window_s == 20


def test_a_file_that_ends_needs_no_other_end(spec_of: Any) -> None:
    assert spec_of("--data", "x.jsonl", "--streams", "4").limits.max_seconds is None


def test_a_broken_yaml_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("target: {}\n profile: {}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"run\.yaml is not valid YAML: line 2, column 2: "):
        read_spec_file(file)


def test_a_file_that_cannot_be_read_is_told_without_the_words_of_the_system(tmp_path: Path) -> None:
    binary = tmp_path / "run.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"cannot read .*run\.yaml: it is not UTF-8 text"):
        read_spec_file(binary)
    with pytest.raises(ConfigError, match=r"cannot read .*gone\.yaml: No such file or directory$"):
        read_spec_file(tmp_path / "gone.yaml")


SAID_OTHERWISE = {
    "backend.headers": "--header sends them with every request, whatever the backend",
    "inputs.kind": "follows from --data and --profile",
    "profile.stages": "a list of stages has a file of its own",
    "target.addresses": "a shared server resolves a registered target once and keeps to it",
    "target.hidden_headers": "a server notes which headers it has filled from secrets",
    "target.url": "is the argument",
}


def test_every_field_of_the_description_can_be_said_by_a_flag() -> None:
    from headway.cli.bench import bench_command

    given = {getattr(option, "path", None) for option in bench_command.params}
    assert {path for path in _paths(RunSpec) if path not in given} == set(SAID_OTHERWISE)


def _paths(model: type[Any], prefix: str = "") -> set[str]:
    parts = {"profile": Profile, "inputs": InputSpec, "backend": BackendSpec}
    leaves = {"objectives", "limits.max_error_rate"}
    paths: set[str] = set()
    for name, field in model.model_fields.items():
        path = prefix + name
        nested = get_args(get_args(parts[path])[0]) if path in parts else (field.annotation,)
        for kind in nested:
            if path not in leaves and isinstance(kind, type) and issubclass(kind, BaseModel):
                paths |= _paths(kind, path + ".")
            else:
                paths.add(path)
    return paths

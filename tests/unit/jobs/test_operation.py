"""Operations and registries: what authors write, and what is refused with a clear sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import BaseModel, Field, ValidationError

from headway.core.errors import ConfigError
from headway.core.states import Lane
from headway.jobs import Operation, Registry, Retry, load_operations, operation, precondition
from headway.jobs.operation import MARK


class Train(BaseModel):
    model: str
    epochs: int = 3


class Settings(BaseModel):
    level: int = 1


def marked(function) -> Operation:
    return getattr(function, MARK)


def test_the_example_of_the_documentation() -> None:
    @operation(lane="long", retryable=True, timeout_s=3600, max_attempts=3)
    def train(job, request: Train) -> dict:
        """Train a model.

        In some way.
        """
        return {"model": request.model, "job": job}

    op = marked(train)
    assert (op.name, op.lane, op.timeout_s) == ("train", Lane.LONG, 3600)
    assert op.retry.max_attempts == 3
    assert op.retry.retryable
    assert op.summary == "Train a model."
    assert op.request_model is Train
    assert op.takes_model
    assert op.request_schema["properties"]["epochs"]["default"] == 3
    assert op.result_schema == {"additionalProperties": True, "type": "object"}
    assert train("me", Train(model="m")) == {"model": "m", "job": "me"}, "still a function"


def test_parameters_become_a_model() -> None:
    @operation(lane="short")
    def add(job, a: int, b: Annotated[int, Field(ge=0)] = 2) -> int:
        return a + b

    op = marked(add)
    assert not op.takes_model
    assert op.request_model.__name__ == "AddRequest"
    assert op.request_model(a=1).model_dump() == {"a": 1, "b": 2}
    for wrong in ({"a": "x"}, {"a": 1, "b": -1}, {"a": 1, "c": 1}, {}):
        with pytest.raises(ValidationError):
            op.request_model.model_validate(wrong)


def test_an_operation_without_input_and_without_parentheses() -> None:
    @operation
    def noop(job) -> None: ...

    op = marked(noop)
    assert op.request_model.model_validate({}).model_dump() == {}
    assert op.lane is Lane.LONG
    assert op.retry.max_attempts == 1


def test_async_functions_are_known_as_such() -> None:
    @operation(lane="inline", cancel_on_disconnect=True)
    async def greet(job, name: str) -> str:
        return name

    assert marked(greet).is_async
    assert marked(greet).cancel_on_disconnect


def test_retry_on_is_kept_by_name_too() -> None:
    @operation(retry_on=ConnectionError)
    def one(job) -> None: ...

    @operation(retry_on=(ConfigError, OSError))
    def two(job) -> None: ...

    assert marked(one).retry_on == (ConnectionError,)
    assert marked(two).retry.retry_on == ("headway.core.errors.ConfigError", "OSError")


def test_a_concurrency_key_is_a_text_or_made_of_the_input() -> None:
    @operation(concurrency_key=lambda request: f"model:{request.model}")
    def by_model(job, request: Train) -> None: ...

    @operation(concurrency_key="one-at-a-time")
    def alone(job) -> None: ...

    @operation
    def free(job) -> None: ...

    assert marked(by_model).concurrency_key_for(Train(model="a")) == "model:a"
    assert marked(alone).concurrency_key_for(None) == "one-at-a-time"
    assert marked(free).concurrency_key_for(None) is None


def test_a_config_overlay_is_validated_against_its_schema() -> None:
    """J10."""

    @operation(config=Settings)
    def configured(job) -> None: ...

    @operation
    def plain(job) -> None: ...

    assert marked(configured).validate_config({}) == Settings(level=1)
    assert marked(configured).validate_config({"level": 4}).level == 4
    with pytest.raises(ValidationError):
        marked(configured).validate_config({"level": "high"})
    assert marked(plain).validate_config({}) == {}
    with pytest.raises(ConfigError, match="takes no configuration"):
        marked(plain).validate_config({"level": 1})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"lane": "fast"}, "long, short or inline"),
        ({"tries": 3}, "no option tries"),
        ({"name": "Not A Name"}, "no name for an operation"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"grace_s": -1}, "under 0"),
        ({"jitter": 2}, "jitter"),
    ],
)
def test_a_bad_option_is_refused_with_a_clear_text(options, text) -> None:
    with pytest.raises(ConfigError, match=text):

        @operation(**options)
        def broken(job) -> None: ...


def test_bad_signatures_are_refused_when_the_server_starts() -> None:
    @operation
    def nothing() -> None: ...

    @operation
    def variadic(job, *values: int) -> None: ...

    @operation
    def bare(job, value) -> None: ...

    @operation
    def unknown(job, value: "Nonesuch") -> None: ...  # noqa: F821, UP037

    for function, text in (
        (nothing, "take the job first"),
        (variadic, r"no \*args"),
        (bare, "annotate parameter value"),
        (unknown, "annotations cannot be read"),
    ):
        with pytest.raises(ConfigError, match=text):
            Registry().add(marked(function))


@pytest.mark.parametrize("after_s", [-1, float("nan"), float("inf")])
def test_a_retry_needs_a_sensible_wait(after_s) -> None:
    with pytest.raises(ConfigError, match="seconds"):
        Retry(after_s=after_s)


# --- registries -----------------------------------------------------------------------------------


def write(directory: Path, name: str, text: str) -> str:
    path = directory / f"{name}.py"
    path.write_text("from headway.jobs import operation, precondition\n" + text)
    return str(path)


ONE = "@operation\ndef same(job) -> None: ...\n"


def test_operations_are_found_by_module_or_file(tmp_path) -> None:
    registry = load_operations(
        write(tmp_path, "registry_a", ONE), write(tmp_path, "registry_b", ONE.replace("same", "b"))
    )
    assert [op.name for op in registry] == ["b", "same"]
    assert "same" in registry
    assert len(registry) == 2
    assert registry.get("nonesuch") is None


def test_two_operations_of_one_name_are_refused(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"two operations have the name same: registry_c\.same"):
        load_operations(write(tmp_path, "registry_c", ONE), write(tmp_path, "registry_d", ONE))


def test_an_imported_operation_is_the_same_one(tmp_path) -> None:
    path = write(tmp_path, "registry_e", ONE)
    load_operations(path)
    again = write(tmp_path, "registry_f", "from registry_e import same\n")
    assert [op.name for op in load_operations(path, again)] == ["same"]


def test_modules_that_cannot_be_used_are_told_apart(tmp_path) -> None:
    for modules, text in (
        (["no_such_module_here"], "there is no module no_such_module_here"),
        ([str(tmp_path / "missing.py")], "there is no Python file"),
        ([write(tmp_path, "registry_g", "import no_such_dependency\n")], "no_such_dependency"),
        ([write(tmp_path, "registry_h", "1 / 0\n")], "ZeroDivisionError"),
        ([write(tmp_path, "registry_i", "")], "has no operation"),
    ):
        with pytest.raises(ConfigError, match=text):
            load_operations(*modules)


async def test_preconditions_are_found_and_their_parameters_checked(tmp_path) -> None:
    """J9."""
    text = ONE + (
        "@precondition(interval_s=5)\n"
        "async def gpu_free(count: int = 1):\n"
        "    return None if count < 2 else 'no GPU is free'\n"
    )
    registry = load_operations(write(tmp_path, "registry_j", text))
    condition = registry.precondition("gpu_free")
    assert [one.name for one in registry.preconditions] == ["gpu_free"]
    assert condition.interval_s == 5
    assert await condition.check(count=1) is None
    assert await condition.check(count=2) == "no GPU is free"
    condition.check_parameters({"count": 3})
    with pytest.raises(ConfigError, match="gpu_free"):
        condition.check_parameters({"cout": 3})


def test_a_precondition_must_be_async() -> None:
    with pytest.raises(ConfigError, match="async"):

        @precondition()
        def blocking() -> None: ...


def test_importing_the_authors_api_is_light() -> None:
    code = (
        "import headway.jobs, sys; "
        "heavy = {'fastapi', 'sqlalchemy', 'uvicorn', 'aiohttp', 'httpx', 'pydantic', 'numpy'} "
        "& set(sys.modules); print(','.join(sorted(heavy)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == ""


def test_the_examples_load() -> None:
    path = Path(__file__).parents[3] / "examples" / "ops.py"
    names = [op.name for op in load_operations(str(path))]
    assert names == ["flaky", "greet", "pipeline", "primes"]

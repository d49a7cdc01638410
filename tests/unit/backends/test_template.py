from __future__ import annotations

import json

import pytest

from headway.backends.template import BodyTemplate
from headway.core.errors import InputError


def test_values_are_escaped_as_json() -> None:
    template = BodyTemplate('{"inputs": "{prompt}", "n": {n}, "tags": {tags}, "s": {"x": 1}}')
    body = template.fill({"prompt": 'say "hi"\n\\ é', "n": 5, "tags": ["a", "b"]})
    assert json.loads(body) == {
        "inputs": 'say "hi"\n\\ é', "n": 5, "tags": ["a", "b"], "s": {"x": 1},
    }  # fmt: skip


def test_a_value_that_looks_like_a_place_is_not_filled_in() -> None:
    assert BodyTemplate("{a}{b}").fill({"a": "{b}", "b": "x"}) == b"{b}x"


def test_a_place_without_a_value_names_what_there_is() -> None:
    with pytest.raises(InputError, match=r"\{missing\} has no value; there are: other, prompt"):
        BodyTemplate("{missing}").fill({"prompt": "p", "other": 1})


def test_names_are_known_before_the_first_request() -> None:
    assert BodyTemplate('{"a": "{x}", "b": {y}}').names == {"x", "y"}

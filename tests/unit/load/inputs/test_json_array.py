"""L10: a data set that is one JSON array (ShareGPT) is split with bounded memory."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.load.inputs import json_array
from headway.load.inputs.json_array import ArrayElements, ArrayError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def split(content: bytes) -> list[bytes]:
    return list(ArrayElements(io.BytesIO(content)))


@settings(deadline=None)
@given(st.lists(values), st.sampled_from([None, 1]), st.booleans())
def test_elements_are_those_of_the_array(elements: list[Any], indent: int, plain: bool) -> None:
    content = json.dumps(elements, indent=indent, ensure_ascii=plain).encode()
    assert [json.loads(one) for one in split(content)] == elements


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_elements_may_lie_across_pieces_of_the_file(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(json_array, "_CHUNK_BYTES", chunk)
    content = ' [ 12345 , {"é": [1, "]"]},\n"\\u00e9\\"", 1.5e+3, -0.25, true, null]\n '.encode()
    assert [json.loads(one) for one in split(content)] == [
        12345,
        {"é": [1, "]"]},
        'é"',
        1500,
        -0.25,
        True,
        None,
    ]


def test_an_element_too_long_is_refused_instead_of_read_into_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_array, "_CHUNK_BYTES", 100)
    monkeypatch.setattr(json_array, "MAX_ELEMENT_CHARACTERS", 1_000)
    with pytest.raises(ArrayError, match="line 2: an element is longer"):
        split(b'[\n"' + b"x" * 10_000)


def test_numbers_of_any_length_are_no_reason_to_stop() -> None:
    """Python refuses to convert integers of more than 4,300 digits; the element is told apart."""
    assert split(b"[1" + b"0" * 5_000 + b", 2]")[1] == b"2"


def test_bytes_that_are_not_utf8_spoil_their_own_element_only() -> None:
    assert split(b'["\xff", "a"]') == [b'"\xff"', b'"a"']


@settings(deadline=None)
@given(st.binary(max_size=60).map(lambda tail: b"[" + tail))
def test_arbitrary_bytes_are_elements_or_refused(content: bytes) -> None:
    try:
        elements = split(content)
    except ArrayError:
        return
    assert all(isinstance(one, bytes) for one in elements)

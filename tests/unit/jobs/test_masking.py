"""Values of secrets are taken out of what a job says, however it is cut (J10)."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.failure import ErrorInfo
from headway.jobs.masking import MASK, Masker, StreamMasker
from headway.jobs.secrets import SecretValues

SECRET = 'sk-"läuft"/0123+45'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        repr(SECRET),
        repr(SECRET.encode()),
        quote(SECRET),
        base64.b64encode(SECRET.encode()).decode(),
        f"Authorization: Bearer {SECRET}\r\n",
    ],
)
def test_a_value_is_found_however_it_is_usually_written(written: str) -> None:
    masked = Masker([SECRET]).text(f"before {written} after")
    assert "0123" not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


def test_each_line_of_a_value_is_masked_and_short_ones_are_left_alone() -> None:
    masker = Masker(["-----BEGIN KEY-----\nMIIEvAIBADANB\nabc\n-----END KEY-----"])
    assert masker.text("line 2: MIIEvAIBADANB") == f"line 2: {MASK}"
    assert masker.text("abc") == "abc"


def test_values_that_overlap_are_hidden_as_one() -> None:
    masker = Masker(["abcdefgh", "efghijkl"])
    assert masker.text("x abcdefghijkl y") == f"x {MASK} y"


def test_a_result_stays_json() -> None:
    masker = Masker(["1234567890", SECRET])
    result = {"n": 1234567890, "text": f"<{SECRET}>", SECRET: [True, 2.5, None, 112345678901]}
    masked = json.loads(masker.json(json.dumps(result).encode()))
    assert masked == {"n": MASK, "text": f"<{MASK}>", MASK: [True, 2.5, None, MASK]}
    untouched = b'{"a":  1}'
    assert masker.json(untouched) is untouched


def test_an_error_is_masked_with_its_traceback_and_its_causes() -> None:
    error = ErrorInfo("E", f"a {SECRET}", f"b {SECRET}", ErrorInfo("F", f"c {SECRET}"))
    masked = Masker([SECRET]).error(error)
    assert masked == ErrorInfo("E", f"a {MASK}", f"b {MASK}", ErrorInfo("F", f"c {MASK}"))


SHORT_ALPHABET = st.text("ab", min_size=8, max_size=12)


@given(
    st.lists(SHORT_ALPHABET, min_size=1, max_size=3),
    st.lists(st.text("abc", max_size=20), max_size=12),
)
def test_a_stream_is_masked_as_its_whole_would_be(values: list[str], pieces: list[str]) -> None:
    masker = Masker(values)
    stream = StreamMasker(masker)
    out = b"".join([*(stream.feed(piece.encode()) for piece in pieces), stream.flush()])
    assert out == masker.data("".join(pieces).encode())


@given(st.integers(min_value=1, max_value=40))
def test_a_value_cut_anywhere_never_shows_and_nothing_else_waits(size: int) -> None:
    stream = StreamMasker(Masker([SECRET]))
    text = f"begin {SECRET} end\n".encode()
    out = b"".join(stream.feed(text[at : at + size]) for at in range(0, len(text), size))
    assert out == f"begin {MASK} end\n".encode()


def test_what_is_held_back_is_bounded() -> None:
    stream = StreamMasker(Masker(["a" * 100]))
    for _ in range(1000):
        stream.feed(b"a" * 50)
        assert len(stream._held) < 100
    assert stream.flush() == b""


def test_values_do_not_show_in_the_text_of_what_carries_them() -> None:
    given = SecretValues({"KEY": SECRET}, {"key": SECRET})
    assert SECRET not in f"{given!r} {given} {given.masker()!r}"

"""Text that UTF-8 cannot hold, replaced."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from headway.core.encodable import encodable

TEXTS = st.text(st.characters(exclude_categories=()))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
)


@given(PLAIN)
def test_whatever_comes_in_can_be_written_as_utf_8_afterwards(value):
    json.dumps(encodable(value), ensure_ascii=False).encode()


@given(st.text())
def test_text_that_can_be_written_stays_as_it_is(text):
    assert encodable({"a": [text, b"bytes", 1]}) == {"a": [text, b"bytes", 1]}


def test_a_lone_surrogate_becomes_a_question_mark():
    assert encodable("no file \udc80") == "no file ?"

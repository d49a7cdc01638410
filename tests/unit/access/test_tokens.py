"""Tokens: recognisable, never echoed, and nothing but themselves."""

from __future__ import annotations

import re
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from headway.access.tokens import PATTERN, mint, parse
from headway.core.json_log import REDACTED, redact

MINTED = mint()


def test_a_token_is_recognised_by_its_hash_alone() -> None:
    presented = parse(MINTED.text)
    assert presented is not None
    assert presented.id == MINTED.id
    assert presented.matches(MINTED.secret_hash)
    assert MINTED.secret_hash == sha256(MINTED.text.encode()).digest()
    assert not presented.matches(mint().secret_hash)


def test_tokens_have_the_form_that_scanners_look_for_and_are_all_different() -> None:
    minted = [mint() for _ in range(200)]
    assert all(re.fullmatch(PATTERN, each.text) for each in minted)
    assert len({each.text for each in minted}) == len({each.id for each in minted}) == 200


def test_no_word_of_a_token_gets_into_a_traceback_or_a_log() -> None:
    secret = MINTED.text.split("_")[2]
    assert secret not in repr(MINTED)
    assert secret not in repr(parse(MINTED.text))
    for text in (f"token {MINTED.text} was sent", f"GET /?t={MINTED.text}", MINTED.text):
        assert secret not in redact(text)
        assert REDACTED in redact(text)


@given(st.text() | st.from_regex(PATTERN, fullmatch=True))
def test_what_is_no_token_is_none(text: str) -> None:
    """A checksum tells what only looks like one, so that the store is not asked."""
    presented = parse(text)
    assert presented is None or text == MINTED.text or not presented.matches(MINTED.secret_hash)


@given(st.integers(0, len(MINTED.text) - 1), st.characters(codec="utf-8"))
def test_a_token_with_one_character_changed_is_none(place: int, character: str) -> None:
    changed = MINTED.text[:place] + character + MINTED.text[place + 1 :]
    assert (parse(changed) is None) == (changed != MINTED.text)

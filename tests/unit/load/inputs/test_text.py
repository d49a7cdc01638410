from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.load.inputs.text import Openings, TextPool
from headway.load.inputs.vocabulary import Vocabulary, uncounted_vocabulary

VOCABULARY = uncounted_vocabulary()
POOL = TextPool(VOCABULARY, seed=3)
OPENINGS = Openings(VOCABULARY, key=12345)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40_000), st.integers(0, 2**128 - 1), st.integers(0, 2**40))
def test_a_text_has_exactly_the_words_asked_for(words: int, key: int, number: int) -> None:
    text = POOL.text(words, key, OPENINGS.words(number, words))
    assert len(text.split(" ")) == words
    assert set(text.split(" ")) <= set(VOCABULARY.words)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 2_000), st.integers(1, 2_000), st.integers(0, 2**128 - 1))
def test_a_shorter_text_is_the_beginning_of_the_longer(a: int, b: int, key: int) -> None:
    short, long = sorted((a, b))
    whole = POOL.text(long, key, OPENINGS.words(9, long)).split(" ")
    assert POOL.text(short, key, OPENINGS.words(9, short)).split(" ") == whole[:short]


def test_openings_are_unique_and_neighbours_differ_in_their_first_word() -> None:
    """Trap 50: a prefix cache must not hit by accident."""
    openings = [tuple(OPENINGS.words(number, 100)) for number in range(20_000)]
    assert len(set(openings)) == len(openings)
    assert all(a[0] != b[0] for a, b in itertools.pairwise(openings))


def test_openings_of_other_keys_share_next_to_nothing() -> None:
    """Trap 50: another seed or stage begins with other words."""
    others = [Openings(VOCABULARY, key) for key in range(1, 6)]
    first_three = [
        {tuple(one.words(number, 3)) for number in range(2_000)} for one in (OPENINGS, *others)
    ]
    for a, b in itertools.combinations(first_three, 2):
        assert len(a & b) <= 3


def test_openings_of_a_small_vocabulary_stay_unique() -> None:
    small = Vocabulary(words=("a", "b", "c"), leads=("a", "b"), source="words")
    openings = Openings(small, key=99)
    texts = {tuple(openings.words(number, 100)) for number in range(5_000)}
    assert len(texts) == 5_000


def test_one_word_is_a_vocabulary_too() -> None:
    single = Vocabulary(words=("a",), leads=("a",), source="words")
    assert Openings(single, key=3).words(5, 4) == ["a"]
    assert TextPool(single, 0).text(4, 1) == "a a a a"


def test_two_texts_of_a_pool_share_no_prefix() -> None:
    texts = [POOL.text(200, key << 64, OPENINGS.words(key, 200)) for key in range(300)]
    longest = max(shared_characters(a, b) for a, b in itertools.combinations(texts, 2))
    assert longest < 30  # characters: a few words, where a cache block has sixteen tokens


def shared_characters(a: str, b: str) -> int:
    pairs = zip(a, b, strict=False)
    return next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.load.inputs.keys import Permutation, derive_key


def test_every_part_of_a_key_changes_it() -> None:
    keys = {
        derive_key(1, 0, "a"),
        derive_key(2, 0, "a"),
        derive_key(1, 1, "a"),
        derive_key(1, 0, "b"),
        derive_key(1, 0, "a", 1),
        derive_key(-1, 0, "a"),
    }
    assert len(keys) == 6


def test_a_key_is_the_same_on_every_machine() -> None:
    assert derive_key(7, 0, "conversation", 3) == 0x74F5A07B803329FC32EE5065B5FFF8C


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 600), st.integers(0, 2**128))
def test_a_permutation_visits_every_position_once(size: int, key: int) -> None:
    permutation = Permutation(size, key)
    assert sorted(permutation[position] for position in range(size)) == list(range(size))


def test_a_permutation_mixes() -> None:
    size = 10_000
    permutation = Permutation(size, 5)
    moved = [permutation[position] for position in range(size)]
    neighbours = sum(abs(a - b) == 1 for a, b in itertools.pairwise(moved))
    assert neighbours < 20  # two expected by chance
    mean_distance = sum(abs(a - b) for a, b in enumerate(moved)) / size
    assert mean_distance == pytest.approx(size / 3, rel=0.05)


def test_permutations_of_two_keys_differ() -> None:
    first, second = Permutation(1000, 1), Permutation(1000, 2)
    assert sum(first[n] == second[n] for n in range(1000)) < 10


@pytest.mark.parametrize("position", [-1, 10])
def test_a_permutation_refuses_positions_outside(position: int) -> None:
    with pytest.raises(IndexError):
        Permutation(10, 1)[position]


def test_nothing_cannot_be_shuffled() -> None:
    with pytest.raises(ValueError, match="at least one position"):
        Permutation(0, 1)

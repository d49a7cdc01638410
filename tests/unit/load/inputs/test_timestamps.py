from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.load.inputs.problems import RowError
from headway.load.inputs.timestamps import ns_from_number, ns_from_text

EPOCH_2023 = 1_700_158_546  # 2023-11-16 18:15:46 UTC


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("12.5", 12_500_000_000),
        (" 0 ", 0),
        ("-1.5", -1_500_000_000),
        ("1700158546.680590012", EPOCH_2023 * 10**9 + 680_590_012),
        ("2023-11-16 18:15:46.6805900", EPOCH_2023 * 10**9 + 680_590_000),
        ("2023-11-16T18:15:46Z", EPOCH_2023 * 10**9),
        ("2023-11-16 19:15:46.000000001+01:00", EPOCH_2023 * 10**9 + 1),
        ("2024-05-10 00:00:00.009930+00:00", 1_715_299_200 * 10**9 + 9_930_000),
    ],
)
def test_times_are_read_to_the_nanosecond(text: str, ns: int) -> None:
    assert ns_from_text(text) == ns


@pytest.mark.parametrize(
    "text",
    ["", "noon", "nan", "inf", "1e999999999", "9999-12-31 23:59:59", "2023-13-01 00:00:00", "1 2"],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(RowError, match="timestamp"):
        ns_from_text(text)


@pytest.mark.parametrize("value", ["1", None, True, 1e30, 10**40, [1]])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(RowError, match="timestamp"):
        ns_from_number(value, 1_000_000)


def test_a_number_of_milliseconds_keeps_its_fraction() -> None:
    assert ns_from_number(27482.25, 1_000_000) == 27_482_250_000


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_time_or_refused(text: str) -> None:
    with contextlib.suppress(RowError):
        assert abs(ns_from_text(text)) < 2**63

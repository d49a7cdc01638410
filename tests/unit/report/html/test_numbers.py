from __future__ import annotations

import pytest

from headway.report.html.numbers import moment


@pytest.mark.parametrize(
    ("iso", "shown"),
    [
        ("2026-12-01T03:53:25.572814+00:00", "2026-12-01 03:53:25 UTC"),
        ("2026-12-01T05:53:25+02:00", "2026-12-01 03:53:25 UTC"),
        ("2026-11-30T00:00:00Z", "2026-11-30 00:00:00 UTC"),
        ("yesterday", "yesterday"),
    ],
)
def test_a_moment_is_shown_to_the_second_in_utc(iso: str, shown: str) -> None:
    assert moment(iso) == shown

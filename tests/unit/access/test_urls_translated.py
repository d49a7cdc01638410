"""Addresses of IPv6 that translators turn into ones of IPv4 are judged as these."""

from __future__ import annotations

import ipaddress

import pytest

from headway.access.urls import Reach, judge


@pytest.mark.parametrize(
    ("text", "reach"),
    [
        ("::ffff:0:169.254.169.254", None),
        ("::ffff:0:0.0.0.0", None),
        ("::ffff:0:127.0.0.1", Reach.LOOPBACK),
        ("::ffff:0:10.0.0.7", Reach.PRIVATE),
        ("::ffff:0:93.184.216.34", Reach.PUBLIC),
    ],
)
def test_an_address_for_a_stateless_translator_lies_where_it_is_translated_to(
    text: str, reach: Reach | None
) -> None:
    assert judge(ipaddress.ip_address(text)) is reach

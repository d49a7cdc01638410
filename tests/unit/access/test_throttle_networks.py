"""Which addresses count as one when wrong tokens come from them."""

from __future__ import annotations

import pytest

from headway.access.throttle import FailureThrottle, ThrottleSettings
from headway.core.clock import NS_PER_S

SETTINGS = ThrottleSettings(burst=3, per_failure_s=10.0)


def throttled_by(address: str) -> FailureThrottle:
    throttle = FailureThrottle(SETTINGS)
    for _ in range(3):
        throttle.failed(address, NS_PER_S)
    return throttle


def test_an_ipv4_address_in_the_form_of_ipv6_is_itself_and_not_all_of_ipv4() -> None:
    """A proxy that listens on both writes clients so: one who guesses shut all others out."""
    throttle = throttled_by("::ffff:203.0.113.7")
    assert throttle.wait_s("::ffff:198.51.100.1", NS_PER_S) == 0
    assert throttle.wait_s("::ffff:203.0.113.7", NS_PER_S) > 0
    assert throttle.wait_s("203.0.113.7", NS_PER_S) > 0


@pytest.mark.parametrize("other", ["2001:DB8::7", "2001:db8:0:0::9", "2001:db8::1%eth0"])
def test_an_address_written_otherwise_is_the_same_one(other: str) -> None:
    assert throttled_by("2001:db8::7").wait_s(other, NS_PER_S) > 0

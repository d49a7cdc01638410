"""Wrong tokens from one address: a few at once, then slowly, in bounded memory."""

from __future__ import annotations

from headway.access.throttle import FailureThrottle, ThrottleSettings
from headway.core.clock import NS_PER_S

SETTINGS = ThrottleSettings(burst=3, per_failure_s=10.0)


def test_a_burst_is_free_then_one_failure_each_while() -> None:
    throttle, now_ns = FailureThrottle(SETTINGS), NS_PER_S
    for _ in range(3):
        assert throttle.wait_s("10.0.0.1", now_ns) == 0
        throttle.failed("10.0.0.1", now_ns)
    assert throttle.wait_s("10.0.0.1", now_ns) == 10.0
    assert throttle.wait_s("10.0.0.2", now_ns) == 0
    assert throttle.wait_s("10.0.0.1", now_ns + 10 * NS_PER_S) == 0
    throttle.failed("10.0.0.1", now_ns + 10 * NS_PER_S)
    assert throttle.wait_s("10.0.0.1", now_ns + 10 * NS_PER_S) == 10.0
    assert throttle.wait_s("10.0.0.1", now_ns + 40 * NS_PER_S) == 0


def test_a_network_of_ipv6_is_one_address() -> None:
    throttle = FailureThrottle(SETTINGS)
    for host in range(3):
        throttle.failed(f"2001:db8::{host}", NS_PER_S)
    assert throttle.wait_s("2001:db8::ffff", NS_PER_S) > 0
    assert throttle.wait_s("2001:db8:0:1::1", NS_PER_S) == 0


def test_memory_is_bounded_whatever_addresses_come() -> None:
    throttle = FailureThrottle(SETTINGS)
    for number in range(30_000):
        throttle.failed(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", NS_PER_S)
    assert len(throttle._forgiven_ns) == 10_000
    assert throttle.wait_s("what is no address", NS_PER_S) == 0

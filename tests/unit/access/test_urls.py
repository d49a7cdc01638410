"""What may be registered as a target, and what its name may resolve to."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.access.urls import (
    Reach,
    check_addresses,
    judge,
    pinned_addresses,
    reach_of,
    read_target_url,
)
from headway.core.errors import ConfigError

GOOD = [
    ("http://gpu-a:8000", "http://gpu-a:8000"),
    ("HTTP://GPU-A:8000/", "http://gpu-a:8000"),
    ("https://api.example.com:443/v1/", "https://api.example.com/v1"),
    ("http://10.0.0.7", "http://10.0.0.7"),
    ("http://gpu-a.internal.:80", "http://gpu-a.internal"),
    ("http://[2001:DB8:0::7]:8000/a-b/c_d", "http://[2001:db8::7]:8000/a-b/c_d"),
    ("http://xn--bcher-kva.example", "http://xn--bcher-kva.example"),
    ("http://localhost:1", "http://localhost:1"),
]

BAD = [
    # another scheme
    "ftp://gpu-a", "file:///etc/passwd", "gopher://gpu-a", "unix:///run/x.sock", "//gpu-a",
    "http+unix://%2Frun%2Fx.sock/v1", "gpu-a", "", "javascript:alert(1)",
    # credentials, and hosts that hide behind them
    "http://user@gpu-a", "http://user:password@gpu-a", "http://gpu-a@169.254.169.254",
    "http://gpu-a%40evil", "http://gpu-a:80@evil",
    # addresses that only some readers take for addresses
    "http://2130706433", "http://0x7f000001", "http://0x7f.0.0.1", "http://0177.0.0.1",
    "http://127.1", "http://127.0.1", "http://0", "http://010.0.0.1",
    "http://1.2.3.4.5", "http://256.1.1.1", "http://gpu.0x10",
    # names that one reader ends where another goes on
    "http://gpu-a\\@evil", "http://gpu-a\\.evil", "http://gpu-a\t.evil", "http://gpu-a\n/",
    " http://gpu-a", "http://gpu-a ", "http://gpu-a\x00", "http://gpu-a#@evil", "http://gpu-a?x",
    "http://gpu-a/?x=1", "http://gpu-a/#x", "http://gpu-a;evil", "http://gpu,a", "http://gp%75-a",
    "http://ｇｐｕ", "http://１２７.0.0.1", "http://gpu。a", "http://[fe80::1%25eth0]",
    "http://[::1", "http://::1", "http://[10.0.0.1]", "http://.a", "http://a..b", "http://-a",
    # ports
    "http://gpu-a:0", "http://gpu-a:65536", "http://gpu-a:-1", "http://gpu-a:80a", "http://gpu-a:",
    "http://gpu-a:８０", "http://:80",
    # paths that lead elsewhere
    "http://gpu-a/../admin", "http://gpu-a/v1/..", "http://gpu-a/./v1", "http://gpu-a//evil",
    "http://gpu-a/%2e%2e/admin", "http://gpu-a/a%2fb", "http://gpu-a/" + "a" * 3000,
]  # fmt: skip


@pytest.mark.parametrize(("text", "normal"), GOOD)
def test_a_plain_url_has_one_normal_form(text: str, normal: str) -> None:
    assert read_target_url(text).text == normal
    assert read_target_url(normal).text == normal


@pytest.mark.parametrize("text", BAD)
def test_a_url_that_could_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        read_target_url(text)


@given(st.text(max_size=40))
def test_whatever_is_taken_has_a_plain_host(text: str) -> None:
    try:
        url = read_target_url(f"http://{text}")
    except ConfigError:
        return
    assert not set(url.host) & set("@/\\%?#[] \t\r\n")
    assert read_target_url(url.text) == url


JUDGED = [
    ("203.0.113.9", Reach.PUBLIC), ("2606:4700::1111", Reach.PUBLIC), ("8.8.8.8", Reach.PUBLIC),
    ("10.1.2.3", Reach.PRIVATE), ("172.31.255.255", Reach.PRIVATE), ("192.168.0.1", Reach.PRIVATE),
    ("100.64.0.1", Reach.PRIVATE), ("fd12:3456::1", Reach.PRIVATE), ("198.18.0.1", Reach.PRIVATE),
    ("127.0.0.1", Reach.LOOPBACK), ("127.9.9.9", Reach.LOOPBACK), ("::1", Reach.LOOPBACK),
    # an IPv4 address in an IPv6 one is where the packet goes
    ("::ffff:127.0.0.1", Reach.LOOPBACK), ("::ffff:10.0.0.1", Reach.PRIVATE),
    ("::ffff:203.0.113.9", Reach.PUBLIC), ("64:ff9b::7f00:1", Reach.LOOPBACK),
    ("::127.0.0.1", Reach.LOOPBACK), ("2002:7f00:0001::1", Reach.LOOPBACK),
    ("2002:0a00:0001::", Reach.PRIVATE),
    # never, registered or not
    ("0.0.0.0", None), ("0.1.2.3", None), ("::", None), ("169.254.169.254", None),
    ("169.254.0.1", None), ("fe80::1", None), ("febf::1", None), ("fec0::1", None),
    ("fd00:ec2::254", None), ("fd20:ce::254", None), ("100.100.100.200", None),
    ("168.63.129.16", None), ("192.0.0.192", None), ("224.0.0.1", None), ("255.255.255.255", None),
    ("240.0.0.1", None), ("ff02::1", None), ("::ffff:169.254.169.254", None),
    ("::ffff:100.100.100.200", None), ("::ffff:0.0.0.0", None), ("64:ff9b::a9fe:a9fe", None),
    ("2002:a9fe:a9fe::", None), ("2001:0:1::1", None), ("64:ff9b:1::1", None),
]  # fmt: skip


@pytest.mark.parametrize(("address", "reach"), JUDGED)
def test_every_address_is_judged_by_where_packets_to_it_end_up(
    address: str, reach: Reach | None
) -> None:
    assert judge(ipaddress.ip_address(address)) is reach


@pytest.mark.parametrize(
    ("addresses", "reach"),
    [
        (["203.0.113.9"], Reach.PUBLIC),
        (["203.0.113.9", "10.0.0.1"], Reach.PRIVATE),
        (["127.0.0.1", "::1"], Reach.LOOPBACK),
    ],
)
def test_registering_says_how_far_in_a_host_lies(addresses: list[str], reach: Reach) -> None:
    assert reach_of("gpu-a", addresses) is reach


def test_a_host_that_is_both_here_and_elsewhere_cannot_be_registered() -> None:
    with pytest.raises(ConfigError, match="both"):
        reach_of("gpu-a", ["127.0.0.1", "10.0.0.1"])


@pytest.mark.parametrize(
    ("allowed", "address", "is_allowed"),
    [
        (Reach.PUBLIC, "203.0.113.9", True),
        (Reach.PUBLIC, "10.0.0.1", False),
        (Reach.PUBLIC, "127.0.0.1", False),
        (Reach.PRIVATE, "10.0.0.1", True),
        (Reach.PRIVATE, "203.0.113.9", True),
        (Reach.PRIVATE, "::1", False),
        (Reach.LOOPBACK, "127.0.0.1", True),
        (Reach.LOOPBACK, "10.0.0.1", False),
        (Reach.LOOPBACK, "169.254.169.254", False),
        (Reach.PRIVATE, "fe80::1", False),
    ],
)
def test_a_name_that_was_rebound_nearer_than_it_was_registered_is_refused(
    allowed: Reach, address: str, is_allowed: bool
) -> None:
    if is_allowed:
        check_addresses("gpu-a", [address], allowed)
        return
    with pytest.raises(ConfigError, match="gpu-a"):
        check_addresses("gpu-a", ["203.0.113.9", address], allowed)


def resolver(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    rest = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        if not rest:
            raise OSError("no such name")
        return rest.pop(0)

    return resolve


async def test_a_name_is_resolved_once_and_all_of_its_addresses_are_judged() -> None:
    url = read_target_url("http://gpu-a.example:8000")
    flips = resolver(["203.0.113.9", "203.0.113.8"], ["203.0.113.9", "127.0.0.1"])
    assert await pinned_addresses(url, Reach.PUBLIC, flips) == ("203.0.113.9", "203.0.113.8")
    with pytest.raises(ConfigError, match=r"resolves to 127\.0\.0\.1, which is loopback"):
        await pinned_addresses(url, Reach.PUBLIC, flips)
    with pytest.raises(ConfigError, match="does not resolve"):
        await pinned_addresses(url, Reach.PUBLIC, flips)


@pytest.mark.parametrize(
    ("registered", "asked", "is_within"),
    [
        ("http://a:1", "http://a:1/v1", True),
        ("http://a:1/v1", "http://a:1/v1/", True),
        ("http://a:1/v1", "http://a:1/v1/x", True),
        ("http://a:1/v1", "http://a:1/v10", False),
        ("http://a:1/v1", "http://a:1", False),
        ("http://a:1", "https://a:1", False),
        ("http://a:1", "http://a:2", False),
        ("http://a:1", "http://b:1", False),
    ],
)
def test_a_registered_url_allows_what_lies_below_it(
    registered: str, asked: str, is_within: bool
) -> None:
    assert read_target_url(registered).contains(read_target_url(asked)) is is_within

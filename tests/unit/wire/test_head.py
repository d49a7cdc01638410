from __future__ import annotations

import pytest

from headway.core.errors import ConfigError
from headway.wire.exchange import WireRequest
from headway.wire.head import HeadCache, check_head


def test_only_the_length_and_body_differ_between_like_requests() -> None:
    cache, headers = HeadCache("host:80"), {"A": "b"}
    first = cache.render(WireRequest("POST", "/x", headers, b"one"))
    second = cache.render(WireRequest("POST", "/x", headers, b"second"))
    assert first == b"POST /x HTTP/1.1\r\nHost: host:80\r\nA: b\r\nContent-Length: 3\r\n\r\none"
    assert second == first[: -len(b"3\r\n\r\none")] + b"6\r\n\r\nsecond"


def test_requests_that_differ_are_kept_apart() -> None:
    cache = HeadCache("h")
    one, two = {"A": "1"}, {"A": "2"}
    rendered = [
        cache.render(WireRequest(method, path, headers))
        for method in ("GET", "POST")
        for path in ("/", "/y")
        for headers in (one, two)
    ]
    assert len(set(rendered)) == 8
    assert all(b"Content-Length" not in r for r in rendered if r.startswith(b"GET"))
    assert all(b"Content-Length: 0\r\n" in r for r in rendered if r.startswith(b"POST"))


def test_the_cache_is_bounded_and_never_mixes_up_mappings_that_are_gone() -> None:
    """An id is given again once its object is gone; the cache must hold on to it."""
    cache = HeadCache("h")
    for i in range(2_000):
        assert b"\r\nN: %d\r\n" % i in cache.render(WireRequest("GET", "/", {"N": str(i)}))


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET\r\n", "/", {}),
        ("GET", "no-slash", {}),
        ("GET", "/a b", {}),
        ("GET", "/\r\nX: y", {}),
        ("GET", "/", {"A": "b\r\nC: d"}),
        ("GET", "/", {"A:": "b"}),
        ("GET", "/", {"Host": "other"}),
        ("GET", "/", {"content-length": "1"}),
        ("GET", "/", {"Connection": "close"}),
    ],
)
def test_what_would_break_the_framing_is_refused(
    method: str, path: str, headers: dict[str, str]
) -> None:
    with pytest.raises(ConfigError):
        check_head(method, path, headers)

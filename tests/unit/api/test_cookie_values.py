"""N5: what other programs of a host leave in a browser signs nobody out of this one."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import Response

from headway.api.sessions import SessionCookie, cookie_value

SCOPE: dict[str, Any] = {"type": "http", "scheme": "http", "server": ("127.0.0.1", 8484)}
FOREIGN = (
    'prefs={"a":1,"b":"x"}', "a=b c d", 'half="un;"', "=", "=x", "expires=x", "path=/", "foo",
    "café=1", "x=(a,b)[c]", "; ;", "headway-84=1", " headway-8484x=1", '"headway-8484=2"',
)  # fmt: skip


def scope_with(*headers: str) -> dict[str, Any]:
    return SCOPE | {"headers": [(b"cookie", each.encode("latin-1")) for each in headers]}


def given(name: str, text: str) -> str:
    """A cookie as a browser sends it back that took it from this server."""
    response, cookie = Response(), SessionCookie(SCOPE)
    cookie._set(response, name, text, 60)
    return response.headers["set-cookie"].partition(";")[0]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_cookie_is_found_beside_whatever_others_have_set(foreign: str) -> None:
    for sent in (f"{foreign}; headway-8484=hw_a", f"headway-8484=hw_a; {foreign}"):
        assert cookie_value(scope_with(sent), "headway-8484") == "hw_a"
    assert cookie_value(scope_with(foreign, "headway-8484=hw_a"), "headway-8484") == "hw_a"


@pytest.mark.parametrize("text", ["hw_abc_def", "gAAAAABk-_x==", "team@lab.example-1"])
def test_a_value_comes_back_as_it_was_given(text: str) -> None:
    assert cookie_value(scope_with(given("headway-8484", text)), "headway-8484") == text


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("other=1",),
        ("headway-8484",),
        ("headway-8484=a; headway-8484=b",),
        ("headway-8484=a", "headway-8484=a"),
        ("Headway-8484=a",),
    ],
)
def test_none_and_two_are_no_cookie(headers: tuple[str, ...]) -> None:
    """Two of one name are sent when another program has set one for a path of its own."""
    assert cookie_value(scope_with(*headers), "headway-8484") is None

from __future__ import annotations

from headway.wire.exchange import WireRequest
from headway.wire.redaction import Redactor, SecretHeaders, redact_url


def test_secret_headers_show_their_names_only() -> None:
    headers = SecretHeaders(
        {"Authorization": "Bearer s3cret", "X-Api-Key": "s3cret", "Accept": "text/html"}
    )
    shown = f"{headers} {headers!r} {WireRequest('GET', '/', headers)}"
    assert "s3cret" not in shown
    assert "Authorization" in shown
    assert "text/html" in shown
    assert headers["Authorization"] == "Bearer s3cret"


def test_known_secrets_are_taken_out_of_texts() -> None:
    redactor = Redactor(["s3cret", ""])
    assert redactor.redact("the key s3cret is wrong") == "the key *** is wrong"
    assert "s3cret" not in repr(redactor)


def test_urls_lose_their_credentials() -> None:
    assert redact_url("http://user:pw@proxy:3128/x") == "http://***@proxy:3128/x"
    assert redact_url("http://proxy:3128") == "http://proxy:3128"
    assert "pw" not in redact_url("http://user:pw@[bad")

from __future__ import annotations

import pytest

from headway.core.errors import ConfigError
from headway.wire.origin import parse_origin


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "host_header"),
    [
        ("http://localhost:8000", "localhost", 8000, "", "localhost:8000"),
        ("http://localhost", "localhost", 80, "", "localhost"),
        ("https://api.example.com/v1/", "api.example.com", 443, "/v1", "api.example.com"),
        ("https://api.example.com:8443", "api.example.com", 8443, "", "api.example.com:8443"),
        ("http://[::1]:8000/a/b", "::1", 8000, "/a/b", "[::1]:8000"),
        ("http://bücher.example", "xn--bcher-kva.example", 80, "", "xn--bcher-kva.example"),
    ],
)
def test_http_urls(url: str, host: str, port: int, path: str, host_header: str) -> None:
    origin = parse_origin(url)
    assert (origin.host, origin.port, origin.path) == (host, port, path)
    assert origin.host_header == host_header
    assert origin.is_tls == url.startswith("https")


@pytest.mark.parametrize(
    ("url", "socket_file", "path"),
    [
        ("unix:///run/vllm.sock", "/run/vllm.sock", ""),
        ("http+unix://%2Frun%2Fvllm.sock/v1", "/run/vllm.sock", "/v1"),
    ],
)
def test_unix_urls(url: str, socket_file: str, path: str) -> None:
    origin = parse_origin(url)
    assert (origin.unix_path, origin.path, origin.is_tls) == (socket_file, path, False)
    assert origin.url == "unix:///run/vllm.sock"


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://host:port",
        "http://host:99999",
        "http://host/?a=b",
        "unix://relative",
        "",
    ],
)
def test_other_urls_are_refused_with_the_valid_forms(url: str) -> None:
    with pytest.raises(ConfigError, match="valid: http://host:port"):
        parse_origin(url)


def test_credentials_in_the_url_are_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_origin("http://user:hunter2@host")
    assert "hunter2" not in str(refused.value)

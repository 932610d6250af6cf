"""The URL of a proxy."""

from __future__ import annotations

import traceback

import pytest

from trioformer._secret import Secret
from trioformer.errors import ConfigError
from trioformer.transport._proxy._environment import find_route
from trioformer.transport._proxy._proxy import Proxy


def parsed(url: str) -> Proxy:
    route = find_route("https://api.test", Secret(url), source="file", variable=lambda _: None)
    assert route is not None
    return route.proxy


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("http://proxy", "http", "proxy", 80),
        ("https://proxy", "https", "proxy", 443),
        ("socks5://proxy", "socks5", "proxy", 1080),
        ("socks5h://proxy", "socks5", "proxy", 1080),
        ("HTTP://Proxy.Test:3128/ignored?as#well", "http", "proxy.test", 3128),
        ("http://[fd00::1]:3128", "http", "fd00::1", 3128),
    ],
)
def test_the_url_has_a_scheme_a_host_and_a_port(url: str, scheme: str, host: str, port: int) -> None:
    proxy = parsed(url)
    assert (proxy.scheme, proxy.host, proxy.port) == (scheme, host, port)
    assert (proxy.user, proxy.password, proxy.authorization) == (None, None, None)


@pytest.mark.parametrize(
    ("user", "name", "password"),
    [
        ("anna:word", "anna", "word"),
        (":word", "", "word"),
        ("an%3Ana:w%40%2Frd%25", "an:na", "w@/rd%"),
        ("änna:wörd", "änna", "wörd"),
    ],
)
def test_the_url_may_have_a_user_and_a_password(user: str, name: str, password: str) -> None:
    proxy = parsed(f"http://{user}@proxy:3128")
    assert (proxy.user, proxy.password) == (Secret(name), Secret(password))
    assert (proxy.host, proxy.port) == ("proxy", 3128)


@pytest.mark.parametrize(
    "url",
    [
        "proxy:3128",
        "ftp://anna:planted@proxy",
        "http://anna:planted@",
        "http://anna:planted@proxy:0",
        "http://proxy:planted",
        "http://anna:planted#1@proxy",
        "http://[::1",
        "http://a b",
        "socks5://:planted@proxy",
        "socks5://anna:" + "planted" * 40 + "@proxy",
    ],
)
def test_what_is_not_the_url_of_a_proxy_is_an_error_that_does_not_quote_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parsed(url)
    assert str(caught.value).startswith("file: proxy-url: is not a valid proxy URL: ")
    assert (caught.value.file, caught.value.key) == ("file", "proxy-url")
    shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    shown.stack[:] = [frame for frame in shown.stack if "tests" not in frame.filename]
    assert "planted" not in "".join(shown.format())


def test_the_proxy_of_the_configuration_comes_before_the_environment() -> None:
    environment = {"HTTPS_PROXY": "http://other", "NO_PROXY": "*"}
    route = find_route("https://api.test", Secret("http://proxy"), source="file", variable=environment.get)
    assert route is not None
    assert str(route.proxy) == "http://proxy:80 (proxy-url)"


def test_neither_repr_nor_str_shows_the_credentials() -> None:
    proxy = parsed("http://anna:planted@proxy:3128")
    assert str(proxy) == "http://proxy:3128 (proxy-url)"
    assert "anna" not in repr(proxy)
    assert "planted" not in repr(proxy)


def test_a_variable_that_is_not_a_proxy_is_no_error_for_a_server_without_one() -> None:
    environment = {"HTTPS_PROXY": "ftp://proxy", "NO_PROXY": "api.test"}
    assert find_route("https://api.test", None, source="file", variable=environment.get) is None
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY: is not a valid proxy URL") as caught:
        find_route("https://other.test", None, source="file", variable=environment.get)
    assert (caught.value.file, caught.value.key) == (None, "HTTPS_PROXY")

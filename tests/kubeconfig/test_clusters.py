"""Proxies in kubeconfigs; test_load.py has servers and certificates."""

from __future__ import annotations

import pytest

from tests.support.kubeconfigs import Write, fails, with_cluster
from trioformer.kubeconfig import load_kubeconfig


@pytest.mark.parametrize(
    "url",
    [
        "http://proxy:3128",
        "https://proxy",
        "socks5://127.0.0.1:1080",
        "http://user:p%40ss@[::1]:3128/",
        "HTTP://proxy",
    ],
)
def test_a_proxy_url_is_loaded_as_it_is(write: Write, url: str) -> None:
    """client-go: TestProxyURL"""
    assert load_kubeconfig(write(with_cluster(**{"proxy-url": url}))).proxy_url == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("proxy:3128", "must begin with http://, https:// or socks5://"),
        ("socks5h://proxy", "must begin with http://, https:// or socks5://"),
        (
            "http://hidden#1@proxy",
            "has '@' after '/', '?' or '#': percent-encode these in name and password, '#' as %23",
        ),
        ("ftp://u:hidden@proxy", "must begin with http://, https:// or socks5://"),
        ("http://", "has no host: it must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden@", "has no host: it must be a URL such as 'http://proxy:3128'"),
        ("http://proxy:port", "must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden@proxy:0", "must be a URL such as 'http://proxy:3128'"),
        ("http://[::1", "must be a URL such as 'http://proxy:3128'"),
        ("http://u:hidden @proxy", "must be a URL such as 'http://proxy:3128'"),
        (5, "must be a string, but YAML reads it as an integer: put it in quotes"),
    ],
)
def test_an_invalid_proxy_url_is_an_error_that_does_not_quote_it(write: Write, url: object, message: str) -> None:
    path = write(with_cluster(**{"proxy-url": url}))
    assert str(fails(lambda: load_kubeconfig(path))) == f"{path}: clusters[dev].cluster.proxy-url: {message}"


def test_the_repr_of_a_configuration_shows_no_password_of_a_proxy(write: Write) -> None:
    config = load_kubeconfig(write(with_cluster(**{"proxy-url": "http://user:s3cret@proxy:3128"})))
    assert "s3cret" not in repr(config)
    assert "@proxy:3128" in repr(config)


def test_compression_is_disabled_by_a_boolean_only(write: Write) -> None:
    assert load_kubeconfig(write(with_cluster(**{"disable-compression": True}))).disable_compression
    error = fails(lambda: load_kubeconfig(write(with_cluster(**{"disable-compression": "true"}))))
    assert error.key == "clusters[dev].cluster.disable-compression"

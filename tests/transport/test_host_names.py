"""Names of hosts that cannot be used are errors of the configuration."""

from __future__ import annotations

import pytest

from tests.support.scripted_http import InMemory
from trioformer.errors import ConfigError
from trioformer.kubeconfig import ClusterConfig
from trioformer.transport._internal import open_transport

LONG = "a" * 64
LONG_NAME = "a." * 150 + "b"
IDNA = "xn--bcher-kva.test"


async def failure(config: ClusterConfig, http_transport: InMemory | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        async with open_transport(config, http_transport=http_transport):
            pass
    return caught.value


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "host",
    [
        "a..b",
        "..",
        ".test",
        LONG,
        f"x.{LONG}.test",
        "a." * 150 + "b",
        "xn--",
        "xn--a",
        "xn--a.test",
        "1.2.3.999",
        "[v1.a]",
    ],
)
async def test_a_server_with_a_bad_host_name_is_a_config_error(scheme: str, host: str) -> None:
    config = ClusterConfig(server=f"{scheme}://{host}:6443/prefix", source="/x/config")
    for http_transport in (None, InMemory([])):
        error = await failure(config, http_transport)
        assert str(error) == f"/x/config: server: has no valid host name or address: '{config.server}'"
        assert (error.file, error.key) == ("/x/config", "server")


@pytest.mark.parametrize(
    "url", ["https://", "https://:6443", "https://b\u00fccher.test", "https://a b", "https://[::1"]
)
def test_a_url_without_a_host_or_with_other_characters_is_a_config_error(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClusterConfig(server=url)
    assert caught.value.key == "server"


@pytest.mark.parametrize("name", [".x", "a..b", LONG, LONG_NAME, "a\0b"])
async def test_a_bad_tls_server_name_is_a_config_error(name: str) -> None:
    error = await failure(ClusterConfig(server="https://api.test", tls_server_name=name, source="/x/config"))
    assert str(error) == f"/x/config: tls-server-name: is not a valid host name: {name!r}"


@pytest.mark.parametrize(
    "host",
    ["localhost", "10.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "a_b.test", "api.test.", "xn--bcher-kva.test", "A.TEST"],
)
async def test_other_names_and_addresses_are_accepted(host: str) -> None:
    for name in (None, "", "api.test", "10.0.0.1", "::1"):
        async with open_transport(ClusterConfig(server=f"https://{host}:6443", tls_server_name=name)):
            pass

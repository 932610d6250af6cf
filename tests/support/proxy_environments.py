"""Environments, servers, and the proxy that Go uses: answers of Go itself, which an end-to-end test asks again."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final, TypeAlias

import attrs

DIRECT: Final = "direct"
ERROR: Final = "error"
PROXY: Final = "http://proxy:3128"

Environment: TypeAlias = Mapping[str, str]


@attrs.frozen
class Row:
    """One question."""

    environment: Environment
    server: str
    expected: str
    """The URL of the proxy, ``direct`` or ``error``."""


def _row(no_proxy: str, server: str, expected: str = DIRECT) -> Row:
    """Make a row with both proxies and this NO_PROXY."""
    return Row({"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": no_proxy}, server, expected)


ROWS: Final = [
    # The variables.
    Row({}, "https://api.test", DIRECT),
    Row({"HTTPS_PROXY": PROXY}, "https://api.test", PROXY),
    Row({"HTTP_PROXY": PROXY}, "https://api.test", DIRECT),
    Row({"https_proxy": PROXY}, "https://api.test", PROXY),
    Row({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, "https://api.test", PROXY),
    Row({"HTTPS_PROXY": "", "https_proxy": PROXY}, "https://api.test", PROXY),
    Row({"HTTPS_PROXY": PROXY, "no_proxy": "api.test"}, "https://api.test", DIRECT),
    Row({"HTTPS_PROXY": PROXY, "NO_PROXY": "x", "no_proxy": "api.test"}, "https://api.test", PROXY),
    Row({"HTTPS_PROXY": PROXY, "NO_PROXY": "", "no_proxy": "api.test"}, "https://api.test", DIRECT),
    Row({"ALL_PROXY": PROXY, "all_proxy": PROXY}, "https://api.test", DIRECT),
    Row({"Https_Proxy": PROXY}, "https://api.test", DIRECT),
    # A CGI program.
    Row({"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, "http://api.test", ERROR),
    Row({"http_proxy": PROXY, "REQUEST_METHOD": "GET"}, "http://api.test", ERROR),
    Row({"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, "https://api.test", PROXY),
    Row({"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET", "NO_PROXY": "*"}, "http://api.test", ERROR),
    # The forms of a proxy.
    Row({"HTTPS_PROXY": "proxy:3128"}, "https://api.test", "http://proxy:3128"),
    Row({"HTTPS_PROXY": "10.0.0.1:3128"}, "https://api.test", "http://10.0.0.1:3128"),
    Row({"HTTPS_PROXY": "[fd00::1]:3128"}, "https://api.test", "http://[fd00::1]:3128"),
    Row({"HTTPS_PROXY": "HTTPS://proxy"}, "https://api.test", "https://proxy"),
    Row({"HTTPS_PROXY": "socks5h://proxy:1"}, "https://api.test", "socks5h://proxy:1"),
    Row({"HTTPS_PROXY": "user:word@proxy:3128"}, "https://api.test", "http://user:word@proxy:3128"),
    Row({"HTTPS_PROXY": "http://user:w%40rd@proxy"}, "https://api.test", "http://user:w%40rd@proxy"),
    # Hosts that never have a proxy.
    _row("", "https://localhost"),
    _row("", "https://127.0.0.1:6443"),
    _row("", "https://[::1]:6443"),
    _row("", "https://[::ffff:127.0.0.1]"),
    _row("", "https://LOCALHOST", PROXY),
    _row("", "https://localhost.", PROXY),
    _row("", "https://0.0.0.0", PROXY),
    # Names.
    _row("api.test", "https://api.test"),
    _row("api.test", "https://sub.api.test"),
    _row("api.test", "https://myapi.test", PROXY),
    _row("api.test", "https://api.test.", PROXY),
    _row("api.test", "https://API.TEST"),
    _row("pi.test", "https://api.test", PROXY),
    _row(".api.test", "https://api.test", PROXY),
    _row(".api.test", "https://sub.api.test"),
    _row("*.api.test", "https://api.test", PROXY),
    _row("*.api.test", "https://a.b.api.test"),
    _row("*api.test", "https://api.test", PROXY),
    _row(".", "https://api.test", PROXY),
    _row(".", "https://api.test."),
    # Ports.
    _row("api.test:443", "https://api.test"),
    _row("api.test:443", "https://api.test:6443", PROXY),
    _row("api.test:6443", "https://sub.api.test:6443"),
    _row(".api.test:6443", "https://sub.api.test:6443"),
    _row(".api.test:6443", "https://api.test:6443", PROXY),
    _row("api.test:", "https://api.test:6443"),
    _row(":443", "https://api.test", PROXY),
    _row("api.test:0443", "https://api.test", PROXY),
    _row("https://api.test", "https://api.test", PROXY),
    # Addresses.
    _row("10.1.2.3", "https://10.1.2.3:6443"),
    _row("10.1.2.3:6443", "https://10.1.2.3:6443"),
    _row("10.1.2.3:443", "https://10.1.2.3:6443", PROXY),
    _row("10.1.2", "https://10.1.2.3", PROXY),
    _row("10.1.2.03", "https://10.1.2.3", PROXY),
    _row("fd00::1", "https://[fd00::1]:6443"),
    _row("FD00:0:0::1", "https://[fd00::1]"),
    _row("[fd00::1]", "https://[fd00::1]", PROXY),
    _row("[fd00::1]:6443", "https://[fd00::1]:6443"),
    _row("::ffff:10.1.2.3", "https://10.1.2.3"),
    _row("10.1.2.3", "https://[::ffff:10.1.2.3]"),
    _row("fe80::1", "https://[fe80::1%25eth0]"),
    _row("fe80::1%eth0", "https://[fe80::1%25eth0]", PROXY),
    # Networks.
    _row("10.0.0.0/8", "https://10.1.2.3:6443"),
    _row("10.0.0.0/8", "https://11.1.2.3", PROXY),
    _row("10.0.0.0/08", "https://10.1.2.3"),
    _row("10.0.0.0/33", "https://10.1.2.3", PROXY),
    _row("010.0.0.0/8", "https://10.1.2.3", PROXY),
    _row("10.0.0.0/8:443", "https://10.1.2.3", PROXY),
    _row("0.0.0.0/0", "https://192.0.2.1"),
    _row("0.0.0.0/0", "https://[2001:db8::1]", PROXY),
    _row("0.0.0.0/0", "https://api.test", PROXY),
    _row("::/0", "https://[2001:db8::1]"),
    _row("fe80::/10", "https://[fe80::1%25eth0]"),
    _row("10.0.0.0/8", "https://[::ffff:10.1.2.3]"),
    _row("::ffff:10.0.0.0/104", "https://10.1.2.3"),
    _row("::ffff:10.0.0.0/64", "https://10.1.2.3", PROXY),
    # Lists.
    _row("*", "https://api.test"),
    _row("x, * ,y", "https://api.test"),
    _row("*:443", "https://api.test", PROXY),
    _row(" x , api.test ,", "https://api.test"),
    _row("x;api.test", "https://api.test", PROXY),
    _row("other.test,10.0.0.0/8,fd00::/8", "https://api.test", PROXY),
]

_NAMES = [
    "api.test",
    "a.api.test",
    "b.a.api.test",
    "API.test",
    "xapi.test",
    "api.test.",
    "localhost",
    "test",
    "a_b.test",
]
_IPV4 = ["10.1.2.3", "10.1.2.4", "127.0.0.1", "192.0.2.7", "1.2.3", "10.1.2.3."]
_IPV6 = ["[fd00::1]", "[fd00::2]", "[::1]", "[::ffff:10.1.2.3]", "[fe80::1%25eth0]"]
_HOSTS = [*_NAMES, *_IPV4, *_IPV6]
_PREFIXES = ["", "", "", ".", "*.", "*", "..", "[", " ", "https://"]
_SUFFIXES = [
    "",
    "",
    "",
    ":443",
    ":6443",
    ":",
    ":80",
    "]",
    "]:443",
    "/8",
    "/24",
    "/0",
    "/104",
    "/128",
    ".",
    " ",
    "%eth0",
]


def random_row(rng: random.Random) -> Row:
    """Make a row of parts that have a meaning, without an answer."""

    def entry() -> str:
        host = rng.choice(_HOSTS)
        if rng.random() < 0.5:
            host = host.strip("[]").replace("%25", "%")
        return rng.choice(_PREFIXES) + host + rng.choice(_SUFFIXES)

    server = rng.choice(["https://", "https://", "http://"]) + rng.choice(_HOSTS) + rng.choice(["", ":443", ":6443"])
    return _row(rng.choice([",", ", "]).join(entry() for _ in range(rng.randrange(4))), server, "")

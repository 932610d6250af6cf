"""What a client does to the servers of this library: the embedded API server, and the health and metrics port.

The attacker is a process of its own, ``hostile.attacker``.
"""

from __future__ import annotations

import os
import resource
import sys
from functools import partial

import trio

from trioformer.manager import run_controllers
from trioformer.metrics import Metrics
from trioformer.testing import APIServer, serve_http

from .measuring import Measured, answer_of, bomb

FILES = 1_024
"""File descriptors that the process may have, as in many containers."""


async def _attack(name: str, url: str) -> str:
    """Run an attacker, and return what it says about the answers."""
    command = [sys.executable, "-m", "hostile.attacker", name, url]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    if done.returncode:
        return f"the attacker failed: {done.stderr.decode()[-200:]}"
    return done.stdout.decode().strip()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _health(name: str, what: str, expected: str = "probe gets 200") -> None:
    @bomb(name, "Health and metrics port", what, expected=expected)
    async def run(measured: Measured) -> str:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
        server = APIServer()
        async with trio.open_nursery() as nursery:
            await nursery.start(server.run)
            async with server.open_client() as client, trio.open_nursery() as inner:
                metrics = Metrics()
                run = partial(run_controllers, client, {}, http="127.0.0.1:0", metrics=metrics)
                url = await inner.start(run)
                assert url is not None
                most = before = _descriptors()

                async def count() -> None:
                    nonlocal most
                    while True:
                        most = max(most, _descriptors())
                        await trio.sleep(0.1)

                inner.start_soon(count)
                with measured:
                    answer = await answer_of(partial(_attack_text, name, url), patience=40)
                inner.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
        return f"{_said.pop()}; {most - before} descriptors more" if _said else answer


_said: list[str] = []


async def _attack_text(name: str, url: str) -> None:
    _said.append(await _attack(name, url))


_health("idle-clients", "200 clients that connect and send nothing", r"^(1[3-9]\d|200) of .* gets 200 in \d{1,3} ms")
_health("many-clients", "1,000 clients that connect and send nothing", r"; afterwards a probe gets 200")
_health("slowloris", "100 clients that send a header a second", r"^100 of 100 .* gets 200")
_health("slow-readers", "200 clients that send a request a second and read nothing")
_health("h2c-preface", "the preface of HTTP/2", r"^(4\d\d|505|closed); a probe gets 200")
_health("h2c-upgrade", "`Upgrade: h2c`", r"^(200|4\d\d);")
_health("websocket", "`Upgrade: websocket`", r"^(200|4\d\d);")
_health("bad-accept", "`Accept` headers that are not valid", r"^((200|400|406|431) ?)+;")
_health("long-request-head", "a request with a head of 1 MB", r"^(431|400|closed)")
_health("long-request-body", "a request with a body of 100 MB", r"^(4\d\d|closed)")
_health("pipelined", "10,000 pipelined requests")
_health("bad-requests", "what is not HTTP")


def _embedded(name: str, what: str, expected: str = "", **options: float) -> None:
    @bomb(name, "Embedded server on a socket", what, expected=expected, **options)
    async def run(measured: Measured) -> str:
        server = APIServer()
        server.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "x" * 10}})
        async with trio.open_nursery() as nursery:
            url = await nursery.start(serve_http, server)
            with measured:
                answer = await answer_of(partial(_attack_text, name, url), patience=40)
            nursery.cancel_scope.cancel()
        return _said.pop() if _said else answer


_embedded("copy-bomb", "a JSON patch of 17 `copy` operations that double", r"^4\d\d$")
_embedded("copy-bomb-list", "a JSON patch of 28 `copy` operations of lists", r"^4\d\d$")
_embedded("nested-body-3000", "bodies nested 3,000 deep: create, merge patch, JSON patch, strategic patch")
_embedded("nested-body-100000", "bodies nested 100,000 deep, in the same requests")
_embedded("big-body", "a body of 100 MB", r"^(413|Broken|Connection|Remote)")
_embedded("endless-body", "a body without end", most_memory=64)
_embedded(
    "no-json", "what a web page may send: text/plain, another `Host`", r"text/plain: 415; another Host: (403|421|400)"
)
_embedded("many-operations", "a JSON patch of 1,000,000 operations", r"^4\d\d$")
_embedded("long-selector", "a selector of 60 KB")

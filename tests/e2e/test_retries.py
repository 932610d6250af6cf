"""Requests through a proxy that breaks them at every point, beside client-go's rest client with the same script.

The server is the embedded one, and each request has a proxy, a client and objects of its own.
With the environment variable ``TRIOFORMER_RETRIES_FIGURES`` the table that is printed goes to that file as well.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import attrs
import pytest
import trio

from tests.support.faulty_proxy import Answer, Break, Fault, FaultyProxy, Point, faulty_proxy
from trioformer import open_client
from trioformer.client import Client
from trioformer.errors import ConnectionFailedError, StatusError
from trioformer.kubeconfig import ClusterConfig
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.models.core_v1 import Namespace as NamespaceModel
from trioformer.testing import APIServer, serve_http

PATIENCE: Final = 5
"""Seconds of a request; what the proxy stalls is an error then."""
AT_ONCE: Final = 40
"""Requests at the same time."""
NAMESPACE: Final = "faults"
PATH: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

REJECTIONS: Final = (Answer(429, "0"), Answer(503, "0"))
"""They say that the request was not begun, and may be sent again at once."""
OTHERS: Final = (Answer(429), Answer(503), Answer(500, "0"), Answer(502, "0"), Answer(504, "0"))
WHILE_SENDING: Final = (Point.HEAD, Point.HALF_BODY, Point.REQUEST)
WHOLE: Final = (Point.EXECUTED, Point.HALF_HEAD, Point.HALF_RESPONSE)


@attrs.frozen
class Verb:
    """A request, in the words of both programs."""

    name: str
    method: str
    of_object: bool
    body: str
    content_type: str = "application/json"
    is_read: bool = False

    def path(self, name: str) -> str:
        return f"{PATH}/{name}" if self.of_object else PATH


APPEND = [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/again"}]
VERBS: Final = (
    Verb("get", "GET", of_object=True, body="", is_read=True),
    Verb("list", "GET", of_object=False, body="", is_read=True),
    Verb(
        "create",
        "POST",
        of_object=False,
        body='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"NAME-"}}',
    ),
    Verb("patch", "PATCH", of_object=True, body=json.dumps(APPEND), content_type="application/json-patch+json"),
    Verb(
        "update",
        "PUT",
        of_object=True,
        body='{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NAME"},"data":{"a":"b"}}',
    ),
    Verb("delete", "DELETE", of_object=True, body=""),
)


def faults_of(verb: Verb) -> list[Fault | None]:
    """Return every fault of a request, and None."""
    points = [point for point in Point if verb.body or point is not Point.HALF_BODY]
    broken = [Fault(point, each) for point in points for each in Break]
    answers = [
        Fault(point, each)
        for point in (*WHILE_SENDING, Point.EXECUTED)
        if point in points
        for each in (*REJECTIONS, *OTHERS)
    ]
    return [None, *broken, *answers]


@attrs.frozen
class Case:
    """One request, and its fault."""

    verb: Verb
    fault: Fault | None

    def __str__(self) -> str:
        if self.fault is None:
            return f"{self.verb.name}: no fault"
        return f"{self.verb.name}: {self.fault.does} at {self.fault.point.name}"


@attrs.frozen
class Ended:
    """How a request has ended."""

    code: int
    """The HTTP status code; 0 without a response."""
    error: str
    executed: int
    """How often the server has executed it."""
    arrived: int
    """How often it has arrived at the proxy completely."""
    identical: bool
    """Whether what has arrived was the same each time."""

    @property
    def is_ok(self) -> bool:
        return not self.error


CASES: Final = [Case(verb, fault) for verb in VERBS for fault in faults_of(verb)]
Send: TypeAlias = Callable[[int, Case, str, str], Awaitable[tuple[int, str]]]
"""Sends the request of a case: its number, its proxy's URL, its object's name; returns code and error."""


async def ours(number: int, case: Case, url: str, name: str) -> tuple[int, str]:
    """Send a request with our client."""
    async with open_client(ClusterConfig(server=url)) as client:
        api = client.api(ConfigMap, NAMESPACE)
        requests: dict[str, Callable[[], Awaitable[object]]] = {
            "get": lambda: api.get(name),
            "list": lambda: api.list(),
            "create": lambda: api.create(ConfigMap(metadata=ObjectMeta(generate_name=f"{name}-"))),
            "patch": lambda: api.patch(name, APPEND, patch_type="json"),
            "update": lambda: api.replace(ConfigMap(metadata=ObjectMeta(name=name), data={"a": "b"})),
            "delete": lambda: api.delete(name),
        }
        try:
            with trio.fail_after(PATIENCE):
                await requests[case.verb.name]()
        except trio.TooSlowError:
            return 0, "deadline"
        except StatusError as exc:
            return exc.code, str(exc)
        except ConnectionFailedError as exc:
            return 0, str(exc)
        return 200, ""


@asynccontextmanager
async def theirs(program: Path) -> AsyncIterator[Send]:
    """Run the program with client-go, and yield what sends a request with it."""
    results: dict[int, tuple[int, str]] = {}
    news: dict[int, trio.Event] = {}
    lock = trio.Lock()
    async with trio.open_nursery() as nursery:
        process = await nursery.start(
            partial(trio.run_process, [str(program)], stdin=-1, stdout=-1)  # pipes
        )

        async def receive() -> None:
            rest = b""
            async for data in process.stdout:
                *lines, rest = (rest + data).split(b"\n")
                for found in map(json.loads, lines):
                    results[found["id"]] = found["code"], found["error"]
                    news[found["id"]].set()

        async def send(number: int, case: Case, url: str, name: str) -> tuple[int, str]:
            verb = case.verb
            order = {
                "id": number,
                "url": url,
                "verb": verb.method,
                "path": verb.path(name),
                "content_type": verb.content_type,
                "body": verb.body.replace("NAME", name),
                "seconds": PATIENCE,
            }
            news[number] = trio.Event()
            async with lock:
                await process.stdin.send_all(json.dumps(order).encode() + b"\n")
            await news[number].wait()
            return results[number]

        nursery.start_soon(receive)
        yield send
        await process.stdin.aclose()


async def prepare(client: Client, prefix: str) -> None:
    """Create the objects of all cases."""
    for number, case in enumerate(CASES):
        if case.verb.of_object:
            finalizers = ("example.com/first",) if case.verb.name == "patch" else ()
            name = f"{prefix}-{number}"
            await client.api(ConfigMap, NAMESPACE).create(
                ConfigMap(metadata=ObjectMeta(name=name, namespace=NAMESPACE, finalizers=finalizers))
            )


async def run_all(port: int, prefix: str, send: Send) -> list[Ended]:
    """Send the requests of all cases, some at the same time."""
    ended: dict[int, Ended] = {}
    limiter = trio.CapacityLimiter(AT_ONCE)

    async def run(number: int, case: Case) -> None:
        async with limiter, faulty_proxy(port, case.fault) as proxy:
            code, error = await send(number, case, proxy.url, f"{prefix}-{number}")
            ended[number] = Ended(code, error, proxy.executed, len(proxy.requests), are_identical(proxy))

    async with trio.open_nursery() as nursery:
        for number, case in enumerate(CASES):
            nursery.start_soon(run, number, case)
    return [ended[number] for number in range(len(CASES))]


def are_identical(proxy: FaultyProxy) -> bool:
    return all(each == proxy.requests[0] for each in proxy.requests)


def category(case: Case, found: Ended) -> str:
    """Return what has become of a request."""
    if found.executed > 1 and not case.verb.is_read:
        return "executed twice"
    return "ok" if found.is_ok else "error"


def is_lie(case: Case) -> bool:
    """Whether the proxy says that a request was not begun which the server has executed."""
    return case.fault is not None and case.fault.point is Point.EXECUTED and case.fault.does in REJECTIONS


def must_succeed(case: Case) -> bool:
    """Whether the request must succeed in spite of the fault."""
    fault = case.fault
    if fault is None or fault.does in REJECTIONS:
        return True
    if not case.verb.is_read:
        return False
    return fault.does in (Break.RESET, Break.CLOSE) or (
        isinstance(fault.does, Answer) and fault.does.retry_after == "0"
    )


@pytest.mark.usefixtures("assets")
async def test_no_write_is_executed_twice_and_none_is_lost_without_an_error(assets: Path) -> None:
    server = APIServer()
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        url = await nursery.start(serve_http, server)
        port = int(url.rpartition(":")[2])
        await nursery.start(server.run)
        client = await stack.enter_async_context(server.open_client())
        await client.api(NamespaceModel).create(NamespaceModel(metadata=ObjectMeta(name=NAMESPACE)))
        for prefix in ("ours", "theirs"):
            await prepare(client, prefix)
        of_ours = await run_all(port, "ours", ours)
        async with theirs(assets / "retries-client-go") as send:
            of_theirs = await run_all(port, "theirs", send)
        made = Counter((each.name or "").rsplit("-", 1)[0] for each in await client.api(ConfigMap, NAMESPACE).list())
        nursery.cancel_scope.cancel()
    report(of_ours, of_theirs)
    for number, (case, found) in enumerate(zip(CASES, of_ours, strict=True)):
        shown = f"{case}: {found}"
        assert found.identical, shown
        if must_succeed(case) and not is_lie(case):
            assert found.is_ok, shown
        if case.verb.is_read:
            continue
        if not is_lie(case):
            assert found.executed <= 1, shown
        if found.is_ok:
            assert found.executed >= 1, shown
        if case.verb.name == "create":
            assert made[f"ours-{number}"] == found.executed, shown
    worse = [
        f"{case}: {our} and not {their}"
        for case, our, their in zip(CASES, of_ours, of_theirs, strict=True)
        if rank(case, our) > rank(case, their) and not is_doubtful(case)
    ]
    assert worse == []


def rank(case: Case, found: Ended) -> int:
    """Return how bad it is what has become of a request."""
    return ("ok", "error", "executed twice").index(category(case, found))


def is_doubtful(case: Case) -> bool:
    """Whether a write got an error 5xx other than 503, after which client-go sends it again, and we do not."""
    return not case.verb.is_read and case.fault is not None and case.fault.does in OTHERS


def report(of_ours: list[Ended], of_theirs: list[Ended]) -> None:
    """Print what has become of the requests, by verb and fault."""
    lines = [f"{'verb':8} {'cases':>5}  {'ours: ok error twice':>22}  {'client-go: ok error twice':>26}"]
    for verb in VERBS:
        rows = [
            (category(case, our), category(case, their))
            for case, our, their in zip(CASES, of_ours, of_theirs, strict=True)
            if case.verb is verb
        ]
        our, their = Counter(row[0] for row in rows), Counter(row[1] for row in rows)
        names = ("ok", "error", "executed twice")
        lines.append(
            f"{verb.name:8} {len(rows):5}  {' '.join(f'{our[each]:6}' for each in names):>22}  "
            f"{' '.join(f'{their[each]:6}' for each in names):>26}"
        )
    lines.append("")
    for case, our_end, their_end in zip(CASES, of_ours, of_theirs, strict=True):
        if (first := category(case, our_end)) != (second := category(case, their_end)) or "twice" in first:
            lines.append(f"{case!s:60} ours: {first} ({our_end.code}); client-go: {second} ({their_end.code})")
    text = "\n".join(lines)
    print(text)  # figures
    if file := os.environ.get("TRIOFORMER_RETRIES_FIGURES"):
        Path(file).write_text(f"{text}\n")

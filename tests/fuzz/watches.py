"""Watches: frames between broken ones, read by a client and by an informer."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx
import trio
from prometheus_client import CollectorRegistry

from trioformer import open_client
from trioformer.cache import ReflectorOptions, SharedInformer, SharedInformerFactory
from trioformer.client import Client, Undecodable, WatchEvent
from trioformer.errors import ConnectionFailedError, QuarantinedError, StatusError, TrioformerError
from trioformer.metrics import Metrics

from .engine import Fuzzer
from .http_memory import MemoryServer, Reply, cut
from .items import (
    Item,
    check_delivered,
    check_undecodable,
    exercise,
    identity_in,
    identity_of,
    new_item,
)
from .json_text import NotJSONError, Raw, Twice, mutate, mutate_text, read, write
from .objects import CONFIGS, KINDS, NAMESPACE, new_status
from .oracle import Oracle

TYPES = ("ADDED", "MODIFIED", "MODIFIED", "DELETED")
SETTLED = 400.0
"""Virtual seconds in which an informer has listed again, whatever has ended its watch."""


@attrs.frozen
class Frame:
    """A line of a watch."""

    data: bytes
    is_good: bool


@attrs.frozen
class Watching:
    """The frames of a watch, and who reads them."""

    kind: str
    frames: tuple[Frame, ...]
    pieces: tuple[bytes, ...]
    """The body."""
    listed: tuple[Item, ...] = ()
    """The objects in the list of an informer."""
    reader: str = "client"
    """``client``, ``strict client`` without a handler of what cannot be decoded, or ``informer``."""


class Watches(Fuzzer[Watching]):
    """Watches once, with a client or an informer."""

    name = "watches"

    def __init__(self) -> None:
        self._server = MemoryServer()

    @asynccontextmanager
    async def open(self, oracle: Oracle) -> AsyncGenerator[None, None]:
        metrics = Metrics()
        observer = metrics.request_observer()
        async with open_client(CONFIGS[0], http_transport=self._server, observer=observer) as client:
            self._client: Client = client
            yield
        check_metrics(metrics, oracle)

    def generate(self, rng: random.Random) -> Watching:
        kind = rng.choice(list(KINDS))
        chance = rng.choice((0.0, 0.2, 0.5, 1.0))
        reader = rng.choice(("client", "client", "client", "strict client", "informer"))
        listed = (
            tuple(new_item(rng, kind, number, chance=chance / 2) for number in range(3)) if reader == "informer" else ()
        )
        frames = tuple(_frame(rng, kind, number, chance) for number in range(rng.choice((0, 1, 3, 5))))
        body = b"".join(frame.data + b"\n" for frame in frames)
        if rng.random() < 0.1:
            body += rng.choice(
                (b"\n\n \r\n", b"x", b'{"type":"ADDED","object":{', b"\x00", b"\xff\n", b"[]\n", b"null\n")
            )
        return Watching(kind, frames, cut(rng, body), listed, reader)

    async def check(self, given: Watching, oracle: Oracle) -> None:
        if given.reader == "informer":
            await self._check_informer(given, oracle)
        else:
            await self._check_client(given, oracle)

    async def _check_client(self, given: Watching, oracle: Oracle) -> None:
        self._server.respond = lambda request: Reply(pieces=given.pieces)
        self._server.is_silent_at_end = lambda request: False
        is_strict = given.reader == "strict client"
        reported: list[Undecodable] = []
        events: list[WatchEvent[Any]] = []

        async def watch() -> None:
            handler = None if is_strict else reported.append
            async with self._client.api(KINDS[given.kind], NAMESPACE).watch(on_undecodable=handler) as stream:
                async for event in stream:
                    events.append(event)  # noqa: PERF401  # those before an error count

        ended = await oracle.call(watch)
        check_undecodable(reported, oracle)
        lines = b"".join(given.pieces).split(b"\n")
        may_stop = is_strict or isinstance(ended, StatusError) or any(b"ERROR" in line for line in lines)
        if isinstance(ended, TrioformerError) and not may_stop:
            is_cut = isinstance(ended, ConnectionFailedError) and lines[-1].strip(b" \r\t")
            oracle.expect(is_cut, "a watch ends because of one frame", ended)
        items = [_event_item(line, line in {frame.data for frame in given.frames if frame.is_good}) for line in lines]
        delivered = [identity_of(event.object) for event in events if event.type != "BOOKMARK"]
        check_delivered(delivered, [item for item in items if item], oracle, namespace=NAMESPACE, stops_at_bad=may_stop)
        for event in events:
            oracle.expect(
                event.type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"), "an unknown type of event", event.type
            )
            exercise(event.object, oracle)

    async def _check_informer(self, given: Watching, oracle: Oracle) -> None:
        finals = _final_state(given)
        watches = 0

        def respond(request: httpx.Request) -> Reply:
            nonlocal watches
            if "watch" in request.url.params:
                watches += 1
                return Reply(pieces=given.pieces if watches == 1 else ())
            items = given.listed if watches == 0 else [Item(data, True) for data in finals.values()]
            meta = {"resourceVersion": "5000" if watches == 0 else "9000"}
            return Reply(
                pieces=(write({"metadata": meta, "items": Raw(b"[" + b",".join(i.data for i in items) + b"]")}),)
            )

        self._server.respond = respond
        self._server.is_silent_at_end = lambda request: "watch" in request.url.params and watches > 1
        reported: list[Undecodable] = []
        errors: list[Exception] = []
        options = ReflectorOptions(
            watch_list=False, undecodable_handler=reported.append, watch_error_handler=errors.append, retry_forever=True
        )
        factory = SharedInformerFactory(self._client, options=options)
        informer = factory.informer(KINDS[given.kind], namespace=NAMESPACE)
        metrics = Metrics(registry=CollectorRegistry())
        metrics.register_factory(factory)

        async def run() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(factory.run)
                await trio.sleep(SETTLED)
                # Its lister may be read while it runs only.
                if informer.has_synced:
                    self._compare(given, informer, finals, oracle)
                nursery.cancel_scope.cancel()

        await oracle.call(run)
        check_metrics(metrics, oracle)
        check_undecodable(reported, oracle)
        for error in errors:
            oracle.error(error)
        oracle.secrets(repr(informer), "repr of an informer")
        oracle.secrets(repr(informer.state), "repr of an informer's state")

    def _compare(
        self, given: Watching, informer: SharedInformer[Any], finals: dict[str, bytes], oracle: Oracle
    ) -> None:
        """Compare the cache with the model, but for the keys that something undecodable was about."""
        doubtful = _doubtful_keys(given)
        lister = informer.lister
        found = {obj.name: identity_of(obj) for obj in lister.list()}
        wanted = {}
        for key, data in finals.items():
            one = identity_in(read(data), namespace=NAMESPACE)
            assert one is not None
            wanted[key] = one
        for name in found.keys() | wanted.keys():
            if name not in doubtful:
                oracle.expect(found.get(name) == wanted.get(name), "the cache is not the model", (name, found, wanted))
        for key, each in lister.quarantined().items():
            oracle.text(repr(each), "repr of a Quarantined")
            error = oracle.call_sync(lambda key=key: lister[key])
            oracle.expect(isinstance(error, QuarantinedError), "a quarantined object is returned", key)


def check_metrics(metrics: Metrics, oracle: Oracle) -> None:
    """Check that no secret is in the text of metrics."""
    text = metrics.render()[0].decode()
    oracle.secrets(text, "the metrics")
    oracle.expect(all(len(line) < 2_000 for line in text.splitlines()), "a line of the metrics is not bounded")


def _frame(rng: random.Random, kind: str, number: int, chance: float) -> Frame:
    """Make a line about one of a few objects, with a version that follows those of the list."""
    item = new_item(rng, kind, rng.randrange(4), chance=chance, typed=True)
    data = item.data.replace(b'"resourceVersion":"10', b'"resourceVersion":"6%d0' % number, 1)
    event = {"type": rng.choice(TYPES), "object": Raw(data)}
    if item.is_good and rng.random() >= chance / 2:
        return Frame(write(event), True)
    if not item.is_good and rng.random() < 0.6:
        return Frame(write(event), False)
    match rng.randrange(7):
        case 0:
            event["type"] = rng.choice(("added", "", "SYNC", 7, None, "\x1b[2J", ["ADDED"], "x" * 9_000))
        case 1:
            event = dict(reversed(event.items()))
        case 2:
            return Frame(write(Twice("type", "DELETED", event["type"], {"object": event["object"]})), False)
        case 3:
            status = new_status(
                rng, rng.choice((410, 500, 403, 429, 2**70)), rng.choice(("Expired", "InternalError", "", "Gone"))
            )
            mutate(rng, status)
            event = {"type": "ERROR", "object": status}
        case 4:
            meta = {"resourceVersion": rng.choice(("7000", "", "x", 7, "9" * 900, "-5"))}
            event = {"type": "BOOKMARK", "object": {"kind": kind, "apiVersion": "v1", "metadata": meta}}
        case 5:
            mutate(rng, event)
        case _:
            return Frame(mutate_text(rng, write(event)), False)
    return Frame(write(event), False)


def _event_item(line: bytes, is_good: bool) -> Item | None:
    """Return the object of a line as plain ``json`` reads it; the whole line if it does not."""
    if is_good:
        return Item(write(read(line)["object"]), True)
    try:
        found = read(line)
        return Item(write(found["object"]), False) if found["type"] in TYPES else None
    except (NotJSONError, KeyError, TypeError):
        return Item(line, False)
    except RecursionError:  # of ``write``
        return Item(b"too deep: " + line, False)


def _final_state(given: Watching) -> dict[str, bytes]:
    """Apply the good frames to the good objects of the list."""
    state = {}
    for item in given.listed:
        if item.is_good:
            state[_name(item.data)] = item.data
    for frame in given.frames:
        if frame.is_good:
            event = read(frame.data)
            name = event["object"]["metadata"]["name"]
            state.pop(name, None)
            if event["type"] != "DELETED":
                state[name] = write(event["object"])
    return state


def _name(data: bytes) -> str:
    name: str = read(data)["metadata"]["name"]
    return name


def _doubtful_keys(given: Watching) -> set[str]:
    """Return the names that something bad was about; all of them if no name can be seen in it.

    What follows an ERROR event is not read, and the server does not send it again.
    """
    doubtful: set[str] = set()
    names = {f"web-{number}" for number in range(4)}
    is_over = False
    for each in (*given.listed, *given.frames):
        if is_over or not each.is_good:
            doubtful |= {name for name in names if name.encode() in each.data} or names
            doubtful |= _other_names(each.data)
        is_over = is_over or b"ERROR" in each.data[:100]
    return doubtful


def _other_names(data: bytes) -> set[str]:
    try:
        found = read(data)
        obj = found.get("object", found)
        return {obj["metadata"]["name"]}
    except NotJSONError:
        return {name.decode() for name in re.findall(rb'"name":"([ -~]*?)"', data)}
    except (AttributeError, KeyError, TypeError):
        return set()

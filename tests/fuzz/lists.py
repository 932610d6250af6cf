"""Lists: objects beside broken ones, envelopes, and pages."""

from __future__ import annotations

import itertools
import random
from typing import Any

import attrs
import httpx

from trioformer.client import ObjectList, Undecodable

from .http_memory import ClientFuzzer, Reply, cut
from .items import Item, check_delivered, check_undecodable, exercise, identity_of, new_item
from .json_text import Raw, is_grammatical, mutate, mutate_text, write
from .objects import KINDS, NAMESPACE
from .oracle import Oracle


@attrs.frozen
class Page:
    """One page: its items, and its body."""

    items: tuple[Item, ...]
    reply: Reply
    is_changed: bool = False
    """Whether something around the items was changed."""


@attrs.frozen
class Listing:
    """The pages of a list, and how they are asked for."""

    kind: str
    pages: tuple[Page, ...]
    namespace: str | None = NAMESPACE
    reports: bool = True
    """Whether objects that cannot be decoded are reported, and not an error."""


class Lists(ClientFuzzer[Listing]):
    """Lists all pages."""

    name = "lists"

    def generate(self, rng: random.Random) -> Listing:
        kind = rng.choice(list(KINDS))
        count = rng.choice((1, 1, 1, 1, 2, 3))
        chance = rng.choice((0.0, 0.2, 0.5, 1.0))
        is_changed = rng.random() < 0.4
        pages = tuple(_page(rng, kind, number, count, chance, is_changed=is_changed) for number in range(count))
        return Listing(kind, pages, rng.choice((NAMESPACE, None)), rng.random() < 0.8)

    async def check(self, given: Listing, oracle: Oracle) -> None:
        numbers = itertools.count()

        def respond(request: httpx.Request) -> Reply:
            number = next(numbers)
            return given.pages[min(number, len(given.pages) - 1)].reply

        self._server.respond = respond
        api = self._client.api(KINDS[given.kind], given.namespace)
        reported: list[Undecodable] = []
        listed: Any = await oracle.call(
            lambda: api.list(on_undecodable=reported.append) if given.reports else api.list()
        )
        check_undecodable(reported, oracle)
        is_changed = any(page.is_changed for page in given.pages)
        items = [item for page in given.pages for item in page.items]
        if not isinstance(listed, ObjectList):
            may_be = is_changed or not (given.reports or all(item.is_good for item in items))
            may_be = may_be or not all(is_grammatical(item.data) for item in items)
            oracle.expect(may_be, "a list is refused because of one object", listed)
            return
        delivered = [identity_of(obj) for obj in listed]
        if not is_changed and all(is_grammatical(item.data) for item in items):
            check_delivered(delivered, items, oracle, namespace=given.namespace)
            oracle.expect(len(delivered) + len(reported) == len(items), "an object is neither delivered nor reported")
            oracle.expect(listed.resource_version == "77", "the version of the list is another", listed)
        for obj in listed:
            exercise(obj, oracle)


def _page(rng: random.Random, kind: str, number: int, count: int, chance: float, *, is_changed: bool) -> Page:
    size = rng.choice((0, 1, 2, 3, 6))
    items = tuple(new_item(rng, kind, 10 * number + index, chance=chance) for index in range(size))
    meta: dict[str, Any] = {"resourceVersion": "77"}
    if number < count - 1:
        meta["continue"] = f"token-{number}"
    version = "example.com/v1" if kind == "Widget" else "v1"
    items_text = Raw(b"[" + b",".join(item.data for item in items) + b"]")
    members: dict[Any, Any] = {"kind": f"{kind}List", "apiVersion": version, "metadata": meta, "items": items_text}
    if rng.random() < 0.3:
        names = list(members)
        rng.shuffle(names)
        members = {name: members[name] for name in names}
    if not is_changed:
        return Page(items, Reply(pieces=cut(rng, write(members))))
    body = _changed_body(rng, members, items_text)
    return Page(items, Reply(pieces=cut(rng, body)), is_changed=True)


def _changed_body(rng: random.Random, members: dict[Any, Any], items: Raw) -> bytes:
    match rng.randrange(6):
        case 0 | 1:
            mutate(rng, members)
        case 2:
            return mutate_text(rng, write(members))
        case 3:
            members["metadata"]["continue"] = rng.choice(
                ("token-0", 7, "", "\x1b[2J", "a&limit=1", "x" * 9_000, "\u2028")
            )
            members["metadata"]["remainingItemCount"] = rng.choice((-1, 2**70, 0.5, "1", None))
        case 4:
            return write(members) + rng.choice((b"x", b"{}", b"\n\n", b"\x00", b"]", b"," + items.data))
        case _:
            members["kind"] = rng.choice(
                ("PodList", "List", "Status", "Table", "SecretList", "", None, "\x1b[2J", "x" * 9_000)
            )
    return write(members)

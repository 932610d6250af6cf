"""Lists in which one object has harmed others, or was taken for another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.http_memory import Reply
from tests.fuzz.items import Item
from tests.fuzz.lists import Listing, Page
from tests.fuzz.secrets import CONTENT

GOOD = b'{"metadata":{"name":"good-%d","namespace":"default","resourceVersion":"5"},"spec":{"key":"%s"}}'


def good(number: int) -> Item:
    return Item(GOOD % (number, CONTENT.encode()), True)


def beside(*bad: bytes, kind: str = "Pod") -> Listing:
    """A list of these objects between two good ones."""
    items = (good(1), *(Item(data, False) for data in bad), good(2))
    body = envelope(items, b'"resourceVersion":"77"').replace(b'"kind":"PodList","apiVersion":"v1",', b"")
    return Listing(kind, (Page(items, Reply(pieces=(body,))),))


def around(meta: bytes, more: bytes = b"", *, pages: int = 1) -> Listing:
    """A list of one good object with these members of its metadata."""
    items = (good(1),)
    page = Page(items, Reply(pieces=(envelope(items, meta, more),)), is_changed=True)
    return Listing("Pod", (page,) * pages)


def envelope(items: tuple[Item, ...], meta: bytes, more: bytes = b"") -> bytes:
    return b'{"kind":"PodList","apiVersion":"v1","metadata":{%s},"items":[%s]%s}' % (
        meta,
        b",".join(i.data for i in items),
        more,
    )


def nested(levels: int) -> bytes:
    return b'{"metadata":{"name":"bad","namespace":"default"},"spec":%s1%s}' % (b'{"a":' * levels, b"}" * levels)


CASES: Mapping[str, Callable[[], Listing]] = {
    "a name that is a path": lambda: beside(b'{"metadata":{"name":"../../api/v1/secrets/x","namespace":"default"}}'),
    "an object of another namespace": lambda: beside(b'{"metadata":{"name":"bad","namespace":"kube-system"}}'),
    "a namespace with a slash": lambda: beside(b'{"metadata":{"name":"bad","namespace":"a/b"}}'),
    "a name with control characters": lambda: beside(b'{"metadata":{"name":"\\u001b[2Jbad","namespace":"default","uid":7}}'),
    "1,100 levels": lambda: beside(nested(1_100)),
    "10,100 levels": lambda: beside(nested(10_100)),
    "100,000 levels": lambda: beside(nested(100_000)),
    "100,000 levels that never end": lambda: around(b'"resourceVersion":"77"', b',"x":' + b"[" * 100_000),
    "levels of a Widget": lambda: beside(nested(1_100), kind="Widget"),
    "levels of metadata": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","x":%s%s}}' % (b"[" * 3_000, b"]" * 3_000), kind="PartialObjectMetadata"),
    "half a surrogate in a key": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default"},"\\ud800":1}'),
    "half a surrogate in a value": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","uid":"\\ud800"}}'),
    "a key that is not UTF-8 beside managedFields": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","managedFields":[{"\xff":1}],"\xff":2},"\xfe":3}'),
    "a label that is not UTF-8": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","labels":{"a":"\xff","\xff":"b"}}}'),
    "a number of 5,000 digits": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","generation":%s}}' % (b"9" * 5_000)),
    "a number beyond floats": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default"},"spec":{"priority":1e999}}'),
    "a version of 5,000 digits": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","resourceVersion":"%s"}}' % (b"9" * 5_000)),
    "a year beyond 9999": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default","creationTimestamp":"99999-01-01T00:00:00Z"}}'),
    "a continue token that is a number": lambda: around(b'"resourceVersion":"77","continue":7'),
    "a continue token twice": lambda: around(b'"resourceVersion":"77","continue":"same"', pages=2),
    "a version that is a list": lambda: around(b'"resourceVersion":["77"]'),
    "an object of 20 MB": lambda: beside(b'{"metadata":{"name":"bad","namespace":"default"},"x":"%s"}' % (b"x" * 20_000_000)),
    "a good object between two with half of a quote": lambda: beside(b'{"metadata":{"name":"bad}}', good(3).data, b'{"metadata":{"name":"bad}}'),
    "a good object between two quotes in brackets": lambda: beside(b'{"a":["}', good(3).data, b'{"b":"]}'),
    "two metadata": lambda: around(b'"resourceVersion":"77"', b',"metadata":{"resourceVersion":"78"}'),
    "an object that is no value": lambda: beside(b"nil"),
    "text after the list": lambda: around(b'"resourceVersion":"77"', b"}{"),
}  # fmt: skip

"""Frames of watches that were quoted, or that ended a watch."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz.items import Item
from tests.fuzz.secrets import CONTENT
from tests.fuzz.watches import Frame, Watching

GOOD = b'{"type":"%s","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s","namespace":"default","resourceVersion":"6000"}}}'


def between(*bad: bytes, reader: str = "client") -> Watching:
    """These lines between two good ones."""
    frames = (
        Frame(GOOD % (b"ADDED", b"one"), True),
        *(Frame(data, False) for data in bad),
        Frame(GOOD % (b"ADDED", b"two"), True),
    )
    listed = (
        (Item(b'{"metadata":{"name":"zero","namespace":"default","resourceVersion":"9"}}', True),)
        if reader == "informer"
        else ()
    )
    return Watching("Pod", frames, (b"".join(frame.data + b"\n" for frame in frames),), listed, reader)


def event(obj: bytes, type_: bytes = b"MODIFIED") -> bytes:
    return b'{"type":"%s","object":%s}' % (type_, obj)


def nested(levels: int) -> bytes:
    return event(b'{"metadata":{"name":"bad","namespace":"default"},"spec":%s1%s}' % (b'{"a":' * levels, b"}" * levels))


CASES: Mapping[str, Callable[[], Watching]] = {
    "white space before the managed fields": lambda: between(event(b'{"metadata":{"name":"bad","namespace":"default",\r "managedFields":[{}]}}'), reader="informer"),
    "a line end inside an object": lambda: between(event(b'{"metadata":{"name":"bad"},"data":{"a\n":"%s"}}' % CONTENT.encode())),
    "the same to an informer": lambda: between(event(b'{"metadata":{"name":"bad"},"data":{"a\n":"%s"}}' % CONTENT.encode()), reader="informer"),
    "a name with a NUL to an informer": lambda: between(event(b'{"metadata":{"name":"bad\\u0000","namespace":"default"}}', b"\\u0007"), reader="informer"),
    "a name that is a path": lambda: between(event(b'{"metadata":{"name":"../x","namespace":"default"}}'), reader="informer"),
    "another namespace": lambda: between(event(b'{"metadata":{"name":"bad","namespace":"kube-system"}}')),
    "another namespace to an informer": lambda: between(event(b'{"metadata":{"name":"bad","namespace":"kube-system"}}'), reader="informer"),
    "1,100 levels": lambda: between(nested(1_100)),
    "10,100 levels to an informer": lambda: between(nested(10_100), reader="informer"),
    "100,000 levels to an informer": lambda: between(nested(100_000), reader="informer"),
    "a frame beyond 16 MB to an informer": lambda: between(event(b'{"x":"%s"}' % (b"x" * (16 << 20))), reader="informer"),
    "an ERROR of 100,000 levels": lambda: between(event(b'{"kind":"Status","code":410,"x":%s%s}' % (b"[" * 100_000, b"]" * 100_000), b"ERROR"), reader="informer"),
    "an ERROR with a retryAfterSeconds of 5,000 digits": lambda: between(
        event(b'{"kind":"Status","code":429,"details":{"retryAfterSeconds":%s}}' % (b"9" * 5_000), b"ERROR"), reader="informer"
    ),
    "a bookmark of 5,000 digits": lambda: between(event(b'{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%s"}}' % (b"9" * 5_000), b"BOOKMARK"), reader="informer"),
    "a key that is not UTF-8": lambda: between(event(b'{"metadata":{"name":"bad","namespace":"default","managedFields":[{"\xff":1}]},"\xff":1}'), reader="informer"),
    "an unknown type of 9,000 characters": lambda: between(event(b'{"metadata":{"name":"bad"}}', b"x" * 9_000), reader="informer"),
}  # fmt: skip

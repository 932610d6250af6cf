"""Objects and numbers of tenants, in the functions that take them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from trioformer.models import (
    Quantity,
    encode,
    from_dict,
    from_json,
    json_equal,
    to_dict,
    unstructured_kind,
)
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.testing import APIServer

from .measuring import Measured, answer_now, answer_of, bomb

Widget = unstructured_kind("e.io/v1", "Widget", plural="widgets")
LEVELS = 100_000


def deep(levels: int, *, with_lists: bool = False) -> object:
    """Nest a value; without recursion."""
    value: object = 1
    for _ in range(levels):
        value = [value] if with_lists else {"a": value}
    return value


def deep_json(levels: int, last: str = "1") -> bytes:
    head = b'{"apiVersion":"e.io/v1","kind":"Widget","metadata":{"name":"x"},"spec":'
    return head + b'{"a":' * levels + last.encode() + b"}" * levels + b"}"


def _add(
    name: str, what: str, prepare: Callable[[], Callable[[], object]], *, group: str = "Objects", **options: float
) -> None:
    """Add a bomb of a function that is not async: all other tasks wait for it."""

    @bomb(name, group, what, **options)
    async def run(measured: Measured) -> str:
        call = prepare()
        with measured:
            return answer_now(call)


def _read(levels: int) -> Callable[[], object]:
    data = deep_json(levels)
    return lambda: from_json(Widget, data)["spec"]


def _to_dict(levels: int) -> Callable[[], object]:
    data = deep_json(levels)
    return lambda: to_dict(from_json(Widget, data))


def _changed(levels: int) -> Callable[[], object]:
    data = deep_json(levels)

    def change() -> object:
        return encode(from_json(ConfigMap, data.replace(b"e.io/v1", b"v1")).evolve(data={"a": "b"}))

    return change


def _equal(levels: int) -> Callable[[], object]:
    one, other = (deep_json(levels, last) for last in "12")
    return lambda: json_equal(from_json(Widget, one), from_json(Widget, other))


def _compared(levels: int) -> Callable[[], object]:
    data = deep_json(levels)
    return lambda: (repr(from_json(Widget, data)), from_json(Widget, data) == from_json(Widget, data))


def _evolved(levels: int) -> Callable[[], object]:
    one, other = (deep_json(levels, last).replace(b"e.io/v1", b"v1").replace(b"Widget", b"ConfigMap") for last in "12")
    return lambda: encode(from_json(ConfigMap, one).evolve(metadata=from_json(ConfigMap, other).metadata))


for _levels in (500, 950, 10_000, LEVELS):
    for _name, _make, _what in (
        ("read", _read, "a field is read"),
        ("to-dict", _to_dict, "`to_dict`"),
        ("change", _changed, "a field beside it is changed, and all is encoded"),
        ("evolve", _evolved, "the metadata is changed, and all is encoded"),
        ("json-equal", _equal, "`json_equal`"),
        ("equal", _compared, "`==` and `repr`"),
    ):
        _add(f"{_name}-{_levels}", f"objects nested {_levels:,} deep: {_what}", partial(_make, _levels))
_add(
    "from-dict",
    "`from_dict` of a dict nested 100,000 deep",
    lambda: lambda: from_dict(Widget, {"metadata": {"name": "x"}, "spec": deep(LEVELS)}),
)
_add(
    "big-number",
    "a number of 1,000,000 digits in an object",
    lambda: lambda: from_json(Widget, deep_json(1, "9" * 1_000_000))["spec"],
)


def _fields(levels: int) -> Callable[[], object]:
    data = b'{"metadata":{"name":"x","labels":%s}}' % (b'{"a":' * levels + b"1" + b"}" * levels)
    return lambda: from_json(Pod, data).metadata.labels


_add("typed-field", "labels nested 100,000 deep are read", lambda: _fields(LEVELS))

_QUANTITIES = "Numbers"
for _name, _text in {
    "1e999999999": "1e999999999",
    "1e-999999999": "1e-999999999",
    "1e99999999999999999999": "1e99999999999999999999",
    "1000000-digits": "9" * 1_000_000,
}.items():
    _add(
        f"quantity-{_name}",
        f"the quantity {_text if len(_text) < 30 else f'of {len(_text):,} digits'}: value, hash, order, equality",
        lambda text=_text: lambda: _use(Quantity(text)),
        group=_QUANTITIES,
    )


def _use(quantity: Quantity) -> object:
    other = Quantity("1Ki")
    return quantity.value, hash(quantity), quantity < other, quantity == other


# --- requests with such objects, to the embedded server ---------------------------------------------------------------


async def _embedded(measured: Measured, call: Callable[..., object]) -> str:
    server = APIServer()
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        async with server.open_client() as client:
            await client.api(ConfigMap, namespace="default").create(
                from_json(ConfigMap, b'{"metadata":{"name":"c"},"data":{"a":"b"}}')
            )
            with measured:
                answer = await answer_of(lambda: call(client))
        nursery.cancel_scope.cancel()
    return answer


def _patch(patch: object) -> Callable[..., object]:
    return lambda client: client.api(ConfigMap, namespace="default").patch("c", patch)


@bomb("patch-request", "Objects", "a merge patch nested 100,000 deep is sent")
async def _merge_patch(measured: Measured) -> str:
    return await _embedded(measured, _patch({"data": deep(LEVELS)}))


@bomb("direct-patch", "Objects", "a merge patch nested 100,000 deep, direct API of the embedded server")
async def _direct(measured: Measured) -> str:
    server = APIServer()
    server.create(from_json(ConfigMap, b'{"metadata":{"name":"c"},"data":{"a":"b"}}'))
    patch = {"data": deep(LEVELS)}
    with measured:
        return answer_now(lambda: server.patch(ConfigMap, "c", patch))

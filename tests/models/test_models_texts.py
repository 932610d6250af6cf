"""Objects with contents that are wrong in every way: only DecodeError, whose texts and contexts have no content."""

from __future__ import annotations

import enum
import json
import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal

import attrs
import pytest

from trioformer.errors import DecodeError
from trioformer.models import (
    JSON,
    KubernetesObject,
    MicroTime,
    Model,
    ObjectMeta,
    Quantity,
    ResourceInfo,
    Time,
    encode,
    from_dict,
    from_json,
    to_dict,
    unstructured_kind,
)
from trioformer.models._internal import find_undecodable, plain, scan_head, scan_without_managed_fields
from trioformer.models._lazy import make
from trioformer.models._merge_changes import merge_changes
from trioformer.models._meta import encode_for_server
from trioformer.models._serde import decode, dumps, loads, map_items

SECRET = "hunter2"
INFO = ResourceInfo(group="texts.example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
Loose = unstructured_kind(INFO)


NOTHING = Quantity("0")
PART = ObjectMeta()


class Color(enum.Enum):
    RED = "red"


def small(instance: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value > 10:
        raise ValueError(f"{value} is too large")


@attrs.frozen
class Size:
    number: int = attrs.field(default=0, validator=small)
    counts: Mapping[str, int] = attrs.field(factory=dict)
    items: tuple[int, ...] = ()
    ratio: float = 0.0
    amount: Quantity = NOTHING
    data: bytes = b""
    since: Time | None = None
    letter: Literal["x", "y"] = "x"
    port: int | str = 0
    color: Color = Color.RED


@dataclass(frozen=True)
class Place:
    rack: Size = Size()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Spec(Model):
    size: Size | None = None
    place: Place | None = None
    color: Color | None = None
    letter: Literal["x", "y"] = "x"
    data: bytes = b""
    number: int = 0
    ratio: float = 0
    ratios: tuple[float, ...] = ()
    since: Time | None = None
    at: MicroTime | None = None
    moment: datetime | None = None
    amount: Quantity | None = None
    amounts: tuple[Quantity, ...] = ()
    limits: Mapping[str, Quantity] = attrs.field(factory=dict)
    labels: Mapping[str, str] = attrs.field(factory=dict)
    counts: Mapping[str, int] = attrs.field(factory=dict)
    free: JSON = None
    port: int | str = 0
    text: str = ""
    part: ObjectMeta = PART
    parts: tuple[ObjectMeta, ...] = ()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Widget(KubernetesObject):
    __resource__ = INFO
    spec: Spec = Spec()


VALUES = [
    f'"{SECRET}"',
    f'["{SECRET}"]',
    f'{{"{SECRET}":"{SECRET}"}}',
    f'[{{"{SECRET}":5}}]',
    f'{{"{SECRET}":[5]}}',
    f'{{"{SECRET}":{{"{SECRET}":5}}}}',
    *(
        f'{{"{name}":{value}}}'
        for name in [*(field.alias for field in attrs.fields(Size)), "rack", "labels", "name", "finalizers"]
        for value in (f'"{SECRET}"', f'["{SECRET}"]', f'{{"{SECRET}":"{SECRET}"}}', "77777777")
    ),
    f'{{"rack":{{"letter":"{SECRET}","counts":{{"{SECRET}":[]}}}}}}',
]


def texts(error: BaseException) -> str:
    """Everything that a log, a traceback or an error tracker shows of an exception."""
    chain, found = [error], []
    while chain:
        one = chain.pop()
        found += [str(one), repr(one), *getattr(one, "__notes__", ())]
        chain += [each for each in (one.__cause__, one.__context__) if each is not None]
        chain += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
    return "\n".join([*found, *traceback.format_exception(error)])


@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Spec) if field.name != "_origin"])
def test_no_error_of_a_field_quotes_its_value_or_the_keys_of_maps(name: str) -> None:
    seen = 0
    for value in VALUES:
        spec = from_json(Spec, f'{{"{name}":{value}}}')
        try:
            found = getattr(spec, name)
            if isinstance(found, Quantity):
                found.value  # noqa: B018
            error = find_undecodable(
                make(Widget, f'{{"metadata":{{"name":"a"}},"spec":{{"{name}":{value}}}}}'.encode())
            )
            if error is not None:
                raise error
        except DecodeError as caught:
            shown = texts(caught).replace(repr(value), "")
            assert SECRET not in shown, shown
            assert "77777777" not in shown, shown
            seen += 1
    assert seen > 0 or name == "free"


def test_an_error_of_the_programs_own_check_says_where_it_was_raised() -> None:
    spec = from_json(Spec, '{"size": {"number": 77777777}}')
    with pytest.raises(DecodeError, match=r"a value is not valid \(ValueError in small, test_models_texts.py:\d+\)"):
        spec.size  # noqa: B018


def test_a_text_is_no_list_of_its_characters() -> None:
    for name in ("amounts", "ratios", "parts"):
        with pytest.raises(DecodeError):
            getattr(from_json(Spec, f'{{"{name}": "{SECRET}"}}'), name)
    with pytest.raises(DecodeError, match=r"expected an array, got str @ \.items"):
        from_json(Spec, '{"size": {"items": "12"}}').size  # noqa: B018


# --- bytes that are not UTF-8, and JSON that Go would not write ---

KEY = b'{"metadata":{"name":"a","namespace":"b"},"\xff\xfe":1,"spec":{"\xff":1,"text":"x"},"status":{}}'
BAD_TEXTS = {
    "invalid UTF-8": b"\xff",
    "a surrogate in UTF-8": b"\xed\xa0\x80",
    "a lone surrogate": rb"\ud800",
    "half a pair": rb"\ud800\u0041",
    "a control character": b"\x00",
    "a short escape": rb"\u00",
}


@pytest.mark.parametrize("bad", BAD_TEXTS.values(), ids=BAD_TEXTS)
@pytest.mark.parametrize(
    "template",
    [
        b'{"metadata":{"name":"%s"},"spec":{}}',
        b'{"metadata":{"name":"a","labels":{"a":"%s"}},"spec":{"text":"%s","labels":{"a":"%s"}}}',
        b'{"metadata":{"name":"a","labels":{"%s":"a"}},"spec":{"labels":{"%s":"a"},"free":{"%s":1}}}',
        b'{"metadata":{"name":"a","%s":1},"spec":{"%s":1,"text":"x","parts":[{"%s":1}]},"%s":1}',
        b'{"%s":1,"metadata":{"name":"a", "managedFields" :[]},"spec":{"text":"x"}}',
        b'{"metadata":{"%s":1,"name":"a", "managedFields" :[]},"spec":{"size":{"%s":1},"free":["%s"]}}',
        b'{"metadata":{"name":"a"},"kind":"%s","apiVersion":"%s","spec":{}}',
    ],
)
def test_texts_that_are_not_unicode_are_decode_errors(template: bytes, bad: bytes) -> None:
    data = template.replace(b"%s", bad)
    uses: list[Callable[[], object]] = [
        lambda: scan_head(data),
        lambda: scan_without_managed_fields(data),
        lambda: from_json(Widget, data),
        lambda: decode(data),
        lambda: loads(data),
    ]
    for kind in (Widget, Loose):
        obj: Any = make(kind, data)
        uses += [
            lambda obj=obj: [repr(obj), hash(obj)],
            lambda obj=obj: [repr(obj.metadata), obj.metadata.labels, obj.kind],
            lambda obj=obj: obj["spec"] if isinstance(obj, Loose) else repr(obj.spec) + str(obj.spec.free),
            lambda obj=obj: obj == make(type(obj), data + b" "),
            lambda obj=obj: encode_for_server(obj),
            lambda obj=obj: encode(obj.evolve(metadata=ObjectMeta(name="b"))),
            lambda obj=obj: encode(obj.evolve(metadata=obj.metadata.evolve(name="b"))),
            lambda obj=obj: to_dict(obj),
            lambda obj=obj: pickle.loads(pickle.dumps(obj)),
            lambda obj=obj: find_undecodable(obj),
            lambda obj=obj: obj.merge({"spec": {"x": 1}}) if isinstance(obj, Loose) else None,
            lambda obj=obj: encode(obj.spec.evolve(text="y", size=Size(1))) if isinstance(obj, Widget) else None,
        ]
    shown: list[str] = []
    for use in uses:
        try:
            use()
        except DecodeError as error:
            shown.append(texts(error))
    assert all("\\xff" not in text for text in shown)


def test_keys_that_are_not_utf_8_are_named_as_such() -> None:
    for use in (
        lambda: encode(make(Widget, KEY).evolve(metadata=ObjectMeta(name="b"))),
        lambda: encode_for_server(make(Widget, KEY)),
        lambda: scan_without_managed_fields(KEY.replace(b'"name"', b'"managedFields" : [], "name"')),
        lambda: list(make(Loose, KEY)),
    ):
        with pytest.raises(DecodeError, match="UTF-8"):
            use()
    with pytest.raises(ValueError, match="UTF-8"):
        map_items(KEY)


def test_a_byte_order_mark_and_what_follows_an_object_are_refused() -> None:
    for data in (b'\xef\xbb\xbf{"metadata":{"name":"a"}}', b'{"metadata":{"name":"a"}}\x00', b'{"metadata":{}} {}'):
        for scan in (scan_head, scan_without_managed_fields):
            with pytest.raises(DecodeError):
                scan(data)
        with pytest.raises(DecodeError):
            from_json(Widget, data)


def test_of_two_members_with_a_name_the_last_counts_as_in_go() -> None:
    data = b'{"metadata":{"name":"a","name":"b"},"spec":{"text":"x","text":"y"},"spec":{"text":"z"}}'
    assert scan_head(data).metadata.name == "b"
    obj = from_json(Widget, data)
    assert (obj.name, obj.metadata.name, obj.spec.text) == ("b", "b", "z")
    assert json.loads(encode(obj.evolve(kind="Other")))["spec"] == {"text": "z"}


# --- numbers and times ---


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5_000, "-" + "9" * 330 + ".5", "NaN", "Infinity", "1_0"])
def test_numbers_out_of_range_are_decode_errors(number: str) -> None:
    for name in ("number", "ratio", "ratios", "free", "amount", "port", "counts", "size"):
        value = {"ratios": f"[{number}]", "counts": f'{{"a":{number}}}', "size": f'{{"number":{number}}}'}
        data = f'{{"{name}":{value.get(name, number)},"text":"x"}}'
        with pytest.raises(DecodeError):
            getattr(make(Spec, data.encode()), name)
        for use in (decode, loads):
            with pytest.raises(DecodeError):
                use(data.encode())
    old = f'{{"unknown":{number}}}'.encode()
    with pytest.raises(DecodeError):
        merge_changes(old, b"{}", b'{"a":1}')


@pytest.mark.parametrize(
    "text",
    [
        "0000-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2020-01-01T00:00:60Z",
        "2020-01-01T00:00:00+99:99",
        "2020-01-01T00:00:00",
        "2020-01-01",
        "٢٠٢٠-01-01T00:00:00Z",
        "1577836800",
    ],
)
def test_times_that_no_program_can_handle_are_decode_errors(text: str) -> None:
    for name in ("since", "at", "moment", "size"):
        value = json.dumps({"since": text} if name == "size" else text)
        with pytest.raises(DecodeError) as caught:
            getattr(from_json(Spec, f'{{"{name}": {value}}}'), name)
        assert text not in texts(caught.value)


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.123456789Z", "2020-01-01T00:00:00-12:00"]
)
def test_times_at_the_limits_are_decoded_and_can_be_encoded_again(text: str) -> None:
    since: Any = from_json(Spec, f'{{"since": "{text}"}}').since
    assert from_json(Spec, encode(Spec(since=since))).since == since.replace(microsecond=0)
    assert since <= datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def test_a_time_outside_of_the_calendar_in_utc_cannot_be_encoded() -> None:
    moment = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    with pytest.raises(ValueError, match="between the years 1 and 9999"):
        encode(Spec(since=moment))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_cannot_be_encoded(number: float) -> None:
    for make_spec in (
        lambda: Spec(ratio=number),
        lambda: Spec(ratios=(1.0, number)),
        lambda: Spec(free=number),
        lambda: Spec(free={"a": [number]}),
        lambda: Spec(size=Size(ratio=number)),
        lambda: from_json(Spec, '{"ratio": 1.5}').evolve(ratio=number),
    ):
        with pytest.raises(ValueError, match="NaN and infinity"):
            encode(make_spec())
    with pytest.raises(ValueError, match="NaN and infinity"):
        plain({"a": [number]})
    with pytest.raises(DecodeError, match="NaN and infinity"):
        from_dict(Widget, {"spec": {"ratio": number}})


def test_a_text_with_a_surrogate_cannot_be_encoded() -> None:
    for value in ("\ud800", {"\ud800": 1}, ["\ud800"]):
        with pytest.raises(ValueError, match="lone surrogate") as caught:
            dumps(value)
        assert not isinstance(caught.value, UnicodeError)

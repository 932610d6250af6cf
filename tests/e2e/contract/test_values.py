"""Random values: what the library makes of them is what kube-apiserver accepts, stores and returns.

Many are sent in one request where a kind has room for them, so that this takes seconds.
Quantities and times of built-in kinds are sent to kube-apiserver only; the embedded server keeps times as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from tests.e2e.contract.conftest import Connected
from tests.e2e.contract.custom_kinds import serve_kind
from tests.e2e.contract.drawn import drawn
from tests.e2e.contract.observed import observe
from trioformer.client import Client
from trioformer.errors import DecodeError, SelectorError
from trioformer.models import LabelSelector, ObjectMeta, Quantity, from_dict
from trioformer.models.coordination_v1 import Lease, LeaseSpec
from trioformer.models.core_v1 import ConfigMap, Event, ObjectReference

# --- quantities -------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.integers(0, 3000).map(str),
    st.integers(0, 10**22).map(str),
    st.tuples(st.integers(0, 200), st.integers(0, 10**6)).map("{0[0]}.{0[1]}".format),
    st.integers(0, 10**12).map(".{}".format),
    st.integers(0, 9).map(lambda zeros: f"1{'0' * zeros}.{'0' * zeros}5"),
)
SUFFIXES = st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])
EXPONENTS = st.tuples(st.sampled_from("eE"), st.integers(-12, 20)).map("{0[0]}{0[1]}".format)
QUANTITIES = st.tuples(st.sampled_from(["", "-", "+"]), NUMBERS, SUFFIXES | EXPONENTS).map("".join)
LARGEST = Decimal(10) ** 21
"""From here on kube-apiserver writes some amounts without their suffix."""
BATCH = 128 * 32
WITHOUT_SUFFIX = "62.5Ki"
"""In canonical form 64000, which is an amount of the other family when it is read again: 64k."""


def resource_slice(quantities: list[str]) -> dict[str, Any]:
    """Return a ResourceSlice with up to 4,096 quantities, which may be negative."""
    devices = [
        {
            "name": f"d{start}",
            "capacity": {f"c{i}": {"value": text} for i, text in enumerate(quantities[start : start + 32])},
        }
        for start in range(0, len(quantities), 32)
    ]
    pool = {"name": "p", "resourceSliceCount": 1}
    spec = {"driver": "example.com", "pool": pool, "allNodes": True, "devices": devices}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "q"}, "spec": spec}


async def stored_quantities(client: Client, quantities: list[str]) -> list[str]:
    path = "/apis/resource.k8s.io/v1/resourceslices"
    found = await observe(client, "POST", path, resource_slice(quantities), dryRun="All")
    assert found["code"] == 201, found
    devices = found["object"]["spec"]["devices"]
    return [device["capacity"][f"c{i}"]["value"] for device in devices for i in range(len(device["capacity"]))]


async def test_quantities_are_stored_as_they_are_or_in_canonical_form(real_server: Connected) -> None:
    texts = [WITHOUT_SUFFIX, *drawn(QUANTITIES, 1_500)]
    texts = [text for text in texts if abs(Quantity(text).value) < LARGEST][:BATCH]
    assert len(texts) > 500
    async with real_server() as client:
        stored = await stored_quantities(client, texts)
        canonical = [Quantity(text).canonical.text for text in texts]
        again = [Quantity(text).canonical.text for text in canonical]
        wrong = [
            (text, found)
            for text, *forms, found in zip(texts, canonical, again, stored, strict=True)
            if found not in (text, *forms) or Quantity(found) != Quantity(text)
        ]
        assert wrong == []
        assert await stored_quantities(client, canonical) == again
        assert [Quantity(text).canonical.text for text in again] == again


async def test_results_of_arithmetic_are_stored_in_canonical_form(real_server: Connected) -> None:
    pairs = [(WITHOUT_SUFFIX, "1k", 1), *drawn(st.tuples(QUANTITIES, QUANTITIES, st.integers(-9, 9)), 800)]
    results = []
    for one, other, factor in pairs:
        a, b = Quantity(one), Quantity(other)
        results += [a + b, a - b, a * factor, -a, sum([a, b], Quantity("0"))]
    texts = [result.text for result in results if abs(result.value) < LARGEST][:BATCH]
    async with real_server() as client:
        stored = await stored_quantities(client, texts)
    wanted = [Quantity(text).canonical.text for text in texts]
    assert [pair for pair in zip(wanted, stored, strict=True) if pair[0] != pair[1]] == []


async def test_quantities_are_compared_as_the_server_does(real_server: Connected) -> None:
    # Amounts in lists of resources are rounded up to thousandths.
    positive = QUANTITIES.map(lambda text: text.lstrip("+-")).filter(
        lambda text: (Fraction(Quantity(text).value) * 1000).denominator == 1
    )
    pairs = drawn(st.tuples(positive, positive), 300)
    limits = [
        {"type": f"example.com/t{i}", "min": {"example.com/r": one}, "max": {"example.com/r": other}}
        for i, (one, other) in enumerate(pairs)
    ]
    body = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    async with real_server() as client:
        found = await observe(client, "POST", "/api/v1/namespaces/default/limitranges", body, dryRun="All")
    refused = {
        int(index)
        for cause in found["causes"]
        for index in re.findall(r"spec\.limits\[(\d+)\]\.min\[.*: min value .* is greater than max value", cause)
    }
    greater = {i for i, (one, other) in enumerate(pairs) if Quantity(one) > Quantity(other)}
    assert [pairs[i] for i in refused ^ greater] == []


async def test_texts_that_are_no_quantities_are_refused(real_server: Connected) -> None:
    letters = st.text("0123456789.eEinumkKMGTP+-", min_size=1, max_size=6)
    # A text without digits is 0 for kube-apiserver, and an error for the library.
    texts = sorted({text for text in drawn(letters, 400) if re.match(r"[+-]?\.?[0-9]", text)})
    async with real_server() as client:
        for text in texts:
            path = "/apis/resource.k8s.io/v1/resourceslices"
            found = await observe(client, "POST", path, resource_slice([text]), dryRun="All")
            try:
                value = Quantity(text).value
            except DecodeError:
                assert found["code"] == 400, text
            else:
                assert (found["code"], abs(value) >= 0) == (201, True), text


# --- times ------------------------------------------------------------------------------------------------------------

ZONES = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)


async def test_times_are_stored_in_utc_with_seconds_or_microseconds(real_server: Connected) -> None:
    async with real_server() as client:
        leases, events = client.api(Lease, "default"), client.api(Event, "default")
        for when in drawn(TIMES, 60):
            lease = Lease(metadata=ObjectMeta(name="l"), spec=LeaseSpec(renew_time=when))
            made = await leases.create(lease, dry_run=True)
            assert made.spec.renew_time == when
            involved = ObjectReference(namespace="default")
            event = Event(metadata=ObjectMeta(name="e"), involved_object=involved, first_timestamp=when)
            noted = await events.create(event, dry_run=True)
            assert noted.first_timestamp == when.astimezone(UTC).replace(microsecond=0)


# --- values of custom kinds -------------------------------------------------------------------------------------------

DIGITS = st.integers(0, 99).map("{:02}".format)
PARTS: dict[str, st.SearchStrategy[str]] = {
    "date-time": st.tuples(
        st.integers(0, 9999).map("{:04}".format),
        DIGITS,
        DIGITS,
        st.sampled_from("Tt "),
        DIGITS,
        DIGITS,
        DIGITS,
        st.sampled_from(["", ".5", ",25", ".123456789"]),
        st.sampled_from(["Z", "z", "+01:00", "-23:59", "", "+1"]),
    ).map(lambda parts: "{}-{}-{}{}{}:{}:{}{}{}".format(*parts)),
    "date": st.tuples(st.integers(0, 9999).map("{:04}".format), DIGITS, DIGITS).map("-".join),
    "duration": st.text("0123456789.hmsuµn wdayek+-", max_size=8),
    "ipv4": st.text("0123456789.", min_size=5, max_size=13),
    "ipv6": st.text("0123456789abcdef:.", min_size=2, max_size=12),
    "cidr": st.tuples(st.sampled_from(["10.0.0.0", "010.1.2.3", "::", "fe80::1"]), st.integers(-1, 140)).map(
        "{0[0]}/{0[1]}".format
    ),
    "mac": st.text("0123456789abcdef:-.", min_size=11, max_size=17),
    "hostname": st.text("ab1-._é", min_size=1, max_size=9),
    "uuid": st.text("0123456789abcdef-", min_size=30, max_size=36),
    "byte": st.text("ABCab01+/=\n", max_size=8),
    "hexcolor": st.text("#0123456789abcdef", max_size=7),
    "k8s-short-name": st.text("ab1-.A", max_size=5),
    "k8s-long-name": st.text("ab1-.A", max_size=7),
}
"""Texts that nearly have a format, by the format."""


async def test_texts_have_a_format_for_both_servers_or_for_none(both_clients: tuple[Client, Client]) -> None:
    fields = {name: {"type": "array", "items": {"type": "string", "format": name}} for name in PARTS}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    texts = {name: drawn(strategy, 120) for name, strategy in PARTS.items()}
    specs = [{name: found[i : i + 30]} for name, found in texts.items() for i in range(0, len(found), 30)]
    different, refused = [], 0
    async for _, embedded, real in results_of(both_clients, schema, specs):
        one, other = (set(found.get("causes", ())) for found in (embedded, real))
        different += sorted(one ^ other)
        refused += len(other)
    assert different == []
    assert 0 < refused < 120 * len(PARTS)


SCALARS = st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 1.0, 2.5, -1e30, 1e21, 2**63, 2**53])
TEXTS = st.text("ab1é\n", max_size=4)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


def _optional(**strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    renamed = {name.replace("__", "-"): strategy for name, strategy in strategies.items()}
    return st.fixed_dictionaries({}, optional=renamed)


TEXT_RULES = _optional(
    minLength=st.integers(0, 3), maxLength=st.integers(0, 3), pattern=st.sampled_from(["^a*$", "b", "[^1]{2}", "é"])
)
NUMBER_RULES = _optional(
    minimum=st.sampled_from([0, 1, -1.5]),
    maximum=st.sampled_from([2, 10, 10.5]),
    exclusiveMinimum=st.booleans(),
    exclusiveMaximum=st.booleans(),
    multipleOf=st.sampled_from([1, 2, 0.5]),
)
LEAVES = st.one_of(
    TEXT_RULES.map(lambda rules: {"type": "string", **rules}),
    NUMBER_RULES.map(lambda rules: {"type": "integer", **rules}),
    NUMBER_RULES.map(lambda rules: {"type": "number", **rules}),
    st.just({"type": "boolean"}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.lists(st.sampled_from(["a", "b", "1"]), min_size=1, max_size=2, unique=True).map(
        lambda values: {"type": "string", "enum": values}
    ),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
)


def _lists(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    rules = _optional(minItems=st.integers(0, 2), maxItems=st.integers(1, 3), nullable=st.booleans())
    return st.tuples(inner, rules).map(lambda made: {"type": "array", "items": made[0], **made[1]})


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    rules = _optional(
        required=st.lists(st.sampled_from("abc"), max_size=2, unique=True),
        nullable=st.booleans(),
        minProperties=st.integers(0, 2),
        maxProperties=st.integers(1, 3),
        default=st.just({}),
    )
    return st.tuples(properties, rules).map(lambda made: {"type": "object", "properties": made[0], **made[1]})


def _maps(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner.map(lambda values: {"type": "object", "additionalProperties": values})


SCHEMAS: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda inner: _lists(inner) | _objects(inner) | _maps(inner), max_leaves=5
)


async def results_of(
    clients: tuple[Client, Client], schema: dict[str, Any], specs: list[dict[str, Any]]
) -> AsyncIterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Send objects of a new kind to both servers; yields each spec, and what the servers made of it."""
    embedded, real = clients
    async with serve_kind(embedded, schema) as one, serve_kind(real, schema) as other:
        for spec in specs:
            found = []
            for client, kind in ((embedded, one), (real, other)):
                info = kind.__resource__
                body = {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": "w"}, "spec": spec}
                result = await observe(client, "POST", info.path(namespace="default"), body, dryRun="All")
                if "object" in result:
                    result["object"] = result["object"].get("spec")
                found.append(result)
            yield spec, found[0], found[1]


def _is_valid(field: dict[str, Any]) -> bool:
    """Return whether a field can be in a definition: its default fits it."""
    default = field.get("default")
    return default is None or not (field.get("required") or field.get("minProperties"))


def _without_bad_defaults(field: Any) -> Any:
    if isinstance(field, list):
        return [_without_bad_defaults(one) for one in field]
    if not isinstance(field, dict):
        return field
    kept = field if _is_valid(field) else {key: value for key, value in field.items() if key != "default"}
    return {key: _without_bad_defaults(value) for key, value in kept.items()}


async def test_random_objects_of_random_schemas_have_the_same_results(both_clients: tuple[Client, Client]) -> None:
    made = [_without_bad_defaults(field) for field in drawn(SCHEMAS, 120)]
    values = drawn(JSON_VALUES, 150)
    fields = {f"f{i}": field for i, field in enumerate(made)}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}
    specs = [
        {f"f{i}": values[(i * 7 + turn * 11) % len(values)] for i in range(start, min(start + 20, len(made)))}
        for turn in range(20)
        for start in range(0, len(made), 20)
    ]
    different = []
    async for spec, embedded, real in results_of(both_clients, schema, specs):
        if embedded != real:
            one, other = (set(found.get("causes", [str(found.get("object"))])) for found in (embedded, real))
            different.append((spec, sorted(one - other), sorted(other - one)))
    assert different == []


# --- selectors --------------------------------------------------------------------------------------------------------

KEYS = ["app", "tier", "a.b/c", "shard"]
LABEL_VALUES = ["", "web", "db", "1", "10", "A_b"]
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(LABEL_VALUES), max_size=3)
KEY = st.sampled_from([*KEYS, "nope"])
VALUE = st.sampled_from(LABEL_VALUES)
REQUIREMENTS = st.one_of(
    st.tuples(KEY, st.sampled_from(["=", "==", "!=", " = "]), VALUE).map("".join),
    st.tuples(KEY, st.sampled_from([" in ", " notin "]), st.lists(VALUE, min_size=1, max_size=3)).map(
        lambda made: f"{made[0]}{made[1]}({','.join(made[2])})"
    ),
    KEY,
    KEY.map("!{}".format),
    st.tuples(KEY, st.sampled_from("<>"), st.integers(-5, 20).map(str)).map("".join),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=3).map(",".join) | st.text("apin=!,() <>1-/", max_size=8)


EDGES = [
    *(
        "app==web",
        " app = web ,  tier\t!= db ",
        "app in ( web , db )",
        "app in(web,db),tier in(web)",
        "app notin (web),tier",
    ),
    *("tier in ()", "tier in (,web)", "tier in (web,)", "tier notin ()", "! app", "app=", "shard > 2", "shard>06", ""),
    *("in", "in in (notin)", "a.b/c in (web,db),app=db", f"app={'x' * 63}", f"{'a' * 63}=b"),
    # Refused:
    *("app=web=x", "app===web", "app=web,", ",app=web", "app in web", "app in (web", "app in", "!app=web", "a b"),
    *("app=-web", "app=we!b", "-app=web", "A.b/c=me", "a/b/c=d", "/c=me", f"{'a' * 64}=b", f"app={'x' * 64}"),
    *("shard>two", "shard>-3", "shard>9223372036854775808", "shard>", "app gt 1", "(app)", "=web"),
]


async def test_selectors_select_what_the_library_says(server_client: Client, namespace: str) -> None:
    api = server_client.api(ConfigMap, namespace)
    for number, labels in enumerate(drawn(LABELS, 25)):
        await api.create(from_dict(ConfigMap, {"metadata": {"name": f"c{number}", "labels": labels}}))
    all_of_them = await api.list()
    for text in [*EDGES, *drawn(SELECTORS, 250)]:
        try:
            selector = LabelSelector.parse(text)
        except SelectorError:
            selector = None
        # Not by the API, which refuses selectors itself.
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        response = await server_client._transport.request("GET", path, params={"labelSelector": text})
        names: set[str] | None = None
        if response.code == 200:
            names = {item["metadata"]["name"] for item in json.loads(bytes(response.body))["items"]}
        expected = selector and {obj.name for obj in all_of_them if selector.matches(obj.metadata.labels)}
        assert (names, text) == (expected, text)

"""What has changed is decided by JSON: which objects are equal, and what an object encodes to after a change."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import pytest

from trioformer.errors import DecodeError
from trioformer.models import (
    JSON,
    FrozenMap,
    KubernetesObject,
    Model,
    ObjectMeta,
    Quantity,
    ResourceInfo,
    Time,
    encode,
    evolve,
    from_dict,
    from_json,
    json_equal,
    unstructured_kind,
)
from trioformer.models._lazy import plan_of
from trioformer.models.apps_v1 import DeploymentSpec
from trioformer.models.core_v1 import ConfigMap, Pod, PodSpec, PodTemplateSpec
from trioformer.models.meta_v1 import Condition

counter = itertools.count()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Rule(Model):
    """A part of a custom resource."""

    path: str = "/"
    weight: int = 1


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RouteSpec(Model):
    """The spec of a custom resource."""

    replicas: int = 0
    ratio: float | None = None
    hosts: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    labels: Mapping[str, str] = FrozenMap()
    limit: Quantity | None = None
    since: Time | None = None
    free: JSON = None
    number: int = attrs.field(factory=lambda: next(counter))
    tags: Mapping[str, str] = attrs.field(factory=dict)
    template: PodTemplateSpec | None = None


@attrs.frozen(kw_only=True)  # with the methods that attrs would make
class Route(KubernetesObject):
    """A custom resource."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="example.com", version="v1", kind="Route", plural="routes", namespaced=True
    )

    spec: RouteSpec = RouteSpec()


@attrs.frozen
class Box:
    """A part of a custom resource, an attrs class that is not a model."""

    size: int = 1
    hosts: tuple[str, ...] = ()
    inner: Box | None = None
    boxes: tuple[Box, ...] = ()
    free: JSON = None


@attrs.frozen(kw_only=True)
class Shelf(Model):
    """A custom resource with such parts."""

    box: Box = Box()
    boxes: tuple[Box, ...] = ()
    named: Mapping[str, tuple[Box, ...]] = FrozenMap()
    times: tuple[Time, ...] = ()
    anything: Any = None


Gadget = unstructured_kind("example.com/v1", "Gadget", plural="gadgets", namespaced=True)


def route(spec: str) -> Route:
    return from_json(Route, f'{{"metadata": {{"name": "a", "resourceVersion": "1"}}, "spec": {spec}}}')


def json_of(model: Model) -> Any:
    return json.loads(encode(model))


# ------------------------------------------------------------------------------------------------- equality

DIFFERENT = [
    ('{"free": 1}', '{"free": true}'),
    ('{"free": 1}', '{"free": 1.0}'),
    ('{"free": {"a": [{"b": 1}]}}', '{"free": {"a": [{"b": true}]}}'),
    ('{"ratio": 1}', '{"ratio": 1.0}'),
    ('{"limit": "1"}', '{"limit": "1000m"}'),
    ('{"limit": 1}', '{"limit": "1"}'),
    ('{"new": 1}', "{}"),
    ('{"template": {"spec": {"new": {"a": 1}}}}', '{"template": {"spec": {"new": {"a": true}}}}'),
    ('{"hosts": null}', "{}"),
    ('{"free": "1"}', '{"free": 1}'),
]
SAME = [
    ('{"free": {"a": 1, "b": 2}}', '{"free": {"b": 2, "a": 1}}'),
    ('{"replicas":1,"new":[1]}', '{ "new": [1],\n "replicas": 1 }'),
    ('{"free": "\\u00e9"}', '{"free": "é"}'),
    ('{"free": 123456789012345678901234567890}', '{"free":123456789012345678901234567890}'),
    ('{"free": 1e999}', '{"free": 1e999}'),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_objects_and_parts_with_different_json_are_not_equal(one: str, other: str) -> None:
    assert route(one).spec != route(other).spec
    assert route(one) != route(other)
    old, new = (from_json(Gadget, encode(route(each))) for each in (one, other))
    assert old != new
    assert old["spec"] != new["spec"]
    read = [route(each) for each in (one, other)]
    for each in read:
        for name in plan_of(RouteSpec).fields:
            getattr(each.spec, name)
    assert read[0].spec != read[1].spec


@pytest.mark.parametrize(("one", "other"), SAME)
def test_objects_with_the_same_json_are_equal_and_have_one_hash(one: str, other: str) -> None:
    assert route(one).spec == route(other).spec
    assert route(one) == route(other)
    assert hash(route(one).spec) == hash(route(other).spec)
    assert hash(route(one)) == hash(route(other))
    changed = route(one).evolve(spec=route(other).spec)
    assert changed == route(one)
    assert encode(changed) == encode(route(one)).replace(b'": ', b'":').replace(b", ", b",") or json_of(changed)


def test_states_are_compared_without_decoding_where_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (from_dict(Pod, {"metadata": {"name": "a", "resourceVersion": each}}) for each in "12")
    monkeypatch.setattr("trioformer.models._serde.canonical", None)
    assert old != new
    assert old == from_json(Pod, encode(old))
    item = from_json(Pod, '{"metadata":{"name":"a"}}')
    event = from_json(Pod, '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}')
    assert item == event == item
    odd = from_json(Pod, '{"metadata": {"name": 5}}')
    assert odd == from_json(Pod, encode(odd))


def test_undecodable_objects_can_be_compared() -> None:
    one, same, other = (from_json(Pod, f'{{"metadata":{text},"spec":5}}') for text in ("5", " 5 ", "6"))
    assert one == same
    assert one != other


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, True, False),
        (1, 1, True),
        (None, False, False),
        ((1, {"a": (True,)}), [1, {"a": [True]}], True),
        (PodSpec(node_name="a"), {"nodeName": "a"}, True),
        (Pod(), {}, False),
    ],
)
def test_free_form_values_are_compared_as_json(one: object, other: object, equal: bool) -> None:
    assert json_equal(one, other) is equal
    assert json_equal(other, one) is equal


@pytest.mark.parametrize(
    ("one", "other"),
    [({"a": 1}, {"a": True}), ({"a": (1, {"b": 0})}, {"a": (1, {"b": False})}), ({"a": 1}, {"a": 1.0})],
)
def test_a_frozen_map_tells_numbers_of_different_types_apart(one: dict[str, Any], other: dict[str, Any]) -> None:
    frozen = from_dict(RouteSpec, {"free": one}).free
    assert frozen != other
    assert other != frozen
    assert not frozen == other  # noqa: SIM201  # both operators
    assert frozen == from_dict(RouteSpec, {"free": one}).free
    assert not frozen != from_dict(RouteSpec, {"free": one}).free  # noqa: SIM202  # both operators
    assert frozen != 5


# ------------------------------------------------------------------------------------------------- changes


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), ({"a": {"b": 0}}, {"a": {"b": False}})])
def test_a_change_of_free_form_json_is_written(old: JSON, new: JSON) -> None:
    before = from_dict(RouteSpec, {"free": old})
    assert encode(before.evolve(free=new)) == encode(from_dict(RouteSpec, {"free": new}))


def test_a_part_of_another_order_is_not_a_change() -> None:
    old = from_json(Route, '{"metadata":{},"spec":{"free":{"a":1,"b":2}}}')
    assert encode(old.evolve(spec=from_json(RouteSpec, '{"free":{"b":2,"a":1}}'))) == encode(old)


def test_fields_that_are_given_are_sent_even_if_they_are_the_default() -> None:
    assert json_of(RouteSpec(replicas=0, hosts=(), labels={}, tags={}, number=7)) == {
        "replicas": 0,
        "hosts": [],
        "labels": {},
        "tags": {},
        "number": 7,
    }
    assert json_of(Rule()) == {}
    assert json_of(Rule(weight=1)) == {"weight": 1}
    assert json_of(Route(spec=RouteSpec(number=1)))["spec"] == {"number": 1}
    assert json_of(RouteSpec(number=1, limit=None, free=None)) == {"number": 1}


def test_built_in_kinds_omit_empty_collections_and_send_given_scalars() -> None:
    condition = Condition(type="Ready", status="True", reason="Done", message="")
    assert json_of(condition) == {"type": "Ready", "status": "True", "reason": "Done", "message": ""}
    assert json_of(DeploymentSpec(replicas=0)) == {"replicas": 0}
    assert json_of(ConfigMap(data={}, metadata=ObjectMeta(name="a", labels={}, finalizers=()))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }
    stored = from_json(ObjectMeta, '{"finalizers": ["a"], "labels": {"a": "b"}, "annotations": {}}')
    assert json_of(stored.evolve(finalizers=(), labels={}, annotations={})) == {"annotations": {}}
    undecodable = from_json(ObjectMeta, '{"finalizers": 5}')
    assert json_of(undecodable.evolve(finalizers=())) == {}


def test_changes_add_up_over_several_evolves() -> None:
    new = Rule().evolve(weight=1).evolve(path="/")
    assert json_of(new) == {"path": "/", "weight": 1}
    old = from_json(RouteSpec, '{"replicas": 3, "new": 1}')
    once = old.evolve(hosts=())
    twice = once.evolve(replicas=0)
    assert json_of(twice.evolve()) == {"replicas": 0, "new": 1, "hosts": []}
    assert json_of(once) == {"replicas": 3, "new": 1, "hosts": []}
    assert json_of(twice.evolve(replicas=3)) == {"replicas": 3, "new": 1, "hosts": []}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_copy_keeps_what_was_given(copied: Any) -> None:
    assert json_of(copied(RouteSpec(replicas=0, number=1))) == {"replicas": 0, "number": 1}


def test_fields_that_were_read_before_are_not_given() -> None:
    old = from_json(RouteSpec, '{"replicas": null, "new": 1}')
    for name in plan_of(RouteSpec).fields:
        getattr(old, name)
    assert json_of(old.evolve(hosts=("a",))) == {"replicas": None, "new": 1, "hosts": ["a"]}


def test_fields_may_be_given_by_position() -> None:
    @attrs.frozen
    class Point(Model):
        x: int = 0
        y: int = 0

    assert json_of(Point(0)) == {"x": 0}
    assert json_of(Point(0).evolve(y=0)) == {"x": 0, "y": 0}


def test_a_field_may_have_another_name_as_an_argument() -> None:
    @attrs.frozen(kw_only=True)
    class Hidden(Model):
        _size: int = 0
        color: str = attrs.field(default="red", alias="colour")

    assert json_of(Hidden(size=0, colour="red")) == {"size": 0, "color": "red"}
    assert json_of(Hidden().evolve(colour="red")) == {"color": "red"}


@pytest.mark.parametrize("made", [from_json(RouteSpec, "{}"), RouteSpec()])
def test_attrs_evolve_is_refused(made: RouteSpec) -> None:
    with pytest.raises(TypeError, match=r"call obj\.evolve\(\.\.\.\)"):
        attrs.evolve(made, replicas=1)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copy_replace_is_evolve() -> None:
    replace: Any = copy.__dict__["replace"]
    assert json_of(replace(from_json(RouteSpec, '{"new": 1}'), hosts=())) == {"new": 1, "hosts": []}


def test_a_field_called_evolve_keeps_its_value() -> None:
    @attrs.frozen(kw_only=True)
    class Species(Model):
        evolve: str = ""  # type: ignore[assignment, misc]  # the field takes the place of the method
        obj: int = 0

    old = from_json(Species, '{"evolve": "slowly", "new": 1}')
    new = evolve(old, obj=2)
    assert (old.evolve, new.evolve, json_of(new)) == ("slowly", "slowly", {"evolve": "slowly", "new": 1, "obj": 2})
    assert evolve(new, evolve="fast").evolve == "fast"


def test_a_changed_copy_decodes_nothing_and_shares_what_was_decoded() -> None:
    old = from_json(RouteSpec, '{"hosts": ["a"], "rules": [{"path": "/"}], "free": 1}')
    hosts = old.hosts
    new = old.evolve(replicas=1)
    assert new.hosts is hosts
    for name in ("rules", "free"):
        with pytest.raises(AttributeError):
            object.__getattribute__(new, name)


def test_what_is_given_for_a_change_passes_converter_and_validator() -> None:
    def check(model: object, attribute: object, value: str) -> None:
        if not value:
            raise ValueError("empty")

    @attrs.frozen(kw_only=True)
    class Named(Model):
        name: str = attrs.field(default="a", converter=str.lower, validator=check)
        place: str = attrs.field(
            default="", converter=attrs.Converter(lambda value, it: f"{it.name}/{value}", takes_self=True)
        )

    old = from_json(Named, '{"name": "A"}')
    assert json_of(old.evolve(name="B", place="C")) == {"name": "b", "place": "b/C"}
    assert json_of(old.evolve(place="C")) == {"name": "A", "place": "A/C"}
    with pytest.raises(ValueError, match="empty"):
        old.evolve(name="")


# ------------------------------------------------------------------------------------------------- undecodable siblings


def test_a_field_can_be_changed_beside_one_that_cannot_be_decoded() -> None:
    old = from_json(RouteSpec, '{"replicas": "three", "since": 5, "hosts": ["a"], "rules": 7}')
    new = old.evolve(hosts=("b",))
    assert encode(new) == b'{"replicas":"three","since":5,"hosts":["b"],"rules":7}'
    assert new.hosts == ("b",)
    for model in (old, new):
        for name in ("replicas", "since", "rules"):
            with pytest.raises(DecodeError, match=rf"RouteSpec\.{name}: "):
                getattr(model, name)
    assert (new.hosts, new.free) == (("b",), None)
    assert json_of(new.evolve(replicas=1)) == {"replicas": 1, "since": 5, "hosts": ["b"], "rules": 7}
    assert new != old


def test_a_part_that_is_not_an_object_cannot_be_changed() -> None:
    part = from_json(Route, '{"spec": 5}').spec
    with pytest.raises(DecodeError, match=r"^cannot decode RouteSpec: "):
        encode(part.evolve(hosts=()))


def test_code_of_a_class_never_sees_a_field_that_cannot_be_decoded() -> None:
    seen = []

    @attrs.frozen(kw_only=True)
    class Checked(Model):
        size: int = attrs.field(default=0, validator=lambda _, __, value: seen.append(value))
        name: str = ""

    @attrs.frozen(kw_only=True)
    class Processed(Model):
        size: int = 0
        name: str = ""

        def __attrs_post_init__(self) -> None:
            seen.append(self.size)

    for cls in (Checked, Processed):
        with pytest.raises(DecodeError, match=r"\.size: "):
            from_json(cls, '{"size": "large"}').evolve(name="a")
    assert seen == []


# ------------------------------------------------------------------------------------------- classes that are no models


@pytest.mark.parametrize(
    ("old", "change", "wanted"),
    [
        ({"size": 1, "new": 1}, {"hosts": ("a",)}, {"size": 1, "new": 1, "hosts": ["a"]}),
        ({"hosts": ["a"], "new": 1}, {"hosts": ()}, {"hosts": [], "new": 1}),
        ({"free": 1}, {"free": True}, {"free": True}),
        ({"free": {"a": 1, "b": {"c": 1}}}, {"free": {"b": {}}}, {"free": {"b": {}}}),
        ({"inner": {"size": 2, "new": 1}}, {"inner": Box(size=3)}, {"inner": {"size": 3, "new": 1}}),
        ({"inner": {"size": 2}, "new": [1]}, {"inner": None}, {"new": [1]}),
        (
            {"boxes": [{"size": 1, "new": 1}, {"size": 2, "new": 2}]},
            {"boxes": (Box(size=2), Box(size=1))},
            {"boxes": [{"size": 2, "new": 2}, {"size": 1, "new": 1}]},
        ),
    ],
)
def test_a_changed_class_that_is_no_model_keeps_what_it_does_not_know(
    old: dict[str, Any], change: dict[str, Any], wanted: dict[str, Any]
) -> None:
    before = from_dict(Shelf, {"box": old, "new": 1})
    assert json_of(before.evolve(box=attrs.evolve(before.box, **change))) == {"box": wanted, "new": 1}
    assert encode(before.evolve(box=attrs.evolve(before.box))) == encode(before)


A, B, C = ({"size": 1, "new": each} for each in "abc")
OTHER = {"size": 2, "new": "o"}
NEW = Box(size=7)
NEW_JSON = {"size": 7, "hosts": [], "boxes": []}


@pytest.mark.parametrize(
    ("old", "change", "wanted"),
    [
        ([A, B], lambda boxes: (*boxes, NEW), [A, B, NEW_JSON]),
        ([A, B], lambda boxes: (NEW, *boxes), [NEW_JSON, A, B]),
        ([A, B], lambda boxes: (boxes[0], NEW, boxes[1]), [A, NEW_JSON, B]),
        ([A, B, C], lambda boxes: (boxes[0], NEW, boxes[2]), [A, NEW_JSON, C]),
        ([A, OTHER, B], lambda boxes: (boxes[0], boxes[2]), [A, B]),
        ([A, B, OTHER], lambda boxes: (boxes[2], *boxes[:2]), [OTHER, A, B]),
        ([OTHER, A, B], lambda boxes: (NEW, *boxes[1:], boxes[0], NEW), [NEW_JSON, A, B, OTHER, NEW_JSON]),
        ([A, B], lambda boxes: (*boxes, Box()), [A, B, {"size": 1, "hosts": [], "boxes": []}]),
        ([A, B], lambda boxes: (), []),
    ],
)
def test_items_alike_in_known_fields_keep_what_each_of_them_has(old: Any, change: Any, wanted: Any) -> None:
    before = from_dict(Shelf, {"boxes": old, "named": {"a": old, "b": old}})
    changed = before.evolve(boxes=change(before.boxes), named={**before.named, "a": change(before.named["a"])})
    assert json_of(changed) == {"boxes": wanted, "named": {"a": wanted, "b": old}}


def test_times_of_one_second_keep_their_own_fractions() -> None:
    texts = ["2020-01-01T00:00:00.1Z", "2020-01-01T00:00:00.2Z"]
    before = from_dict(Shelf, {"times": texts})
    changed = before.evolve(times=(*before.times, before.times[0].replace(year=2021)))
    assert json_of(changed) == {"times": [*texts, "2021-01-01T00:00:00Z"]}


# ------------------------------------------------------------------------------------------------- frozen


def parts(value: Any) -> Iterator[Any]:
    yield value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | frozenset) else ()
    for item in items:
        yield from parts(item)


@pytest.mark.parametrize("hint", [Any, object, JSON, "tuple[Any, ...]", Mapping[str, Any]])
def test_decoded_values_are_frozen_whatever_the_hint(hint: Any) -> None:
    value = attrs.field(default=None, type=hint)
    cls = attrs.make_class("Loose", {"value": value}, bases=(Model,), frozen=True, kw_only=True, slots=True)
    text = '{"value": [{"a": [1]}]}' if hint != Mapping[str, Any] else '{"value": {"b": [{"a": [1]}]}}'
    found = from_json(cls, text).value
    assert {type(part) for part in parts(found)} <= {FrozenMap, tuple, int}


def test_a_default_factory_runs_for_each_object_and_what_it_makes_is_frozen() -> None:
    one, other = from_json(RouteSpec, "{}"), from_json(RouteSpec, "{}")
    assert one.number != other.number
    assert one.number == one.number
    assert (type(one.tags), one.tags) == (FrozenMap, {})
    assert one.replicas == 0
    assert one.number != other.number
    first, second = RouteSpec(), RouteSpec()
    assert first.number != second.number
    assert json_of(first) == {"number": first.number}
    assert json_of(first.evolve(hosts=())) == {"hosts": [], "number": first.number}
    assert encode(one.evolve(hosts=("a",))) == b'{"hosts":["a"]}'


def test_a_default_factory_receives_the_object() -> None:
    @attrs.frozen(kw_only=True)
    class Named(Model):
        name: str = ""
        title: str = attrs.Factory(lambda it: it.name.upper(), takes_self=True)

    assert from_json(Named, '{"name": "a"}').title == "A"
    assert from_json(Named, '{"name": "a"}') != Named(name="a")  # which has the title, too
    assert Named(name="a").title == "A"


def test_what_a_program_gives_is_frozen_at_every_level() -> None:
    given: Any = ([{"a": {1}}],)
    spec = RouteSpec(free=given)
    assert {type(part) for part in parts(spec.free)} == {tuple, FrozenMap, frozenset, int}
    rules = (Rule(),)
    assert RouteSpec(rules=rules).rules is rules

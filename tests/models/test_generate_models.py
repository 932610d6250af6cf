"""Every generated model, against the schema that it was generated from."""

from __future__ import annotations

import base64
import copy
import importlib
import itertools
import json
import pickle
import random
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trioformer.models
from trioformer.models import KubernetesObject, Model, Quantity, encode, evolve, from_json, resource_of
from trioformer.models._generate import Schema
from trioformer.models._generate._naming import EMPTY, LEAVES, class_of, module_of
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models._lazy import plan_of
from trioformer.models.builtin_kinds import MODULES

Sample: TypeAlias = dict[str, Any]

MODELS = Path(trioformer.models.__file__).parent
SCHEMA = Schema.loads((MODELS / "_schema.json").read_text(encoding="utf-8"))
DEFINITIONS = [name for name in SCHEMA.definitions if name not in LEAVES]
BY_MODULE = {module: list(names) for module, names in itertools.groupby(sorted(DEFINITIONS, key=module_of), module_of)}
KINDS = {one.kind: one.definition for one in SCHEMA.resources if one.definition is not None}

JSON_LEAVES = {name for name, hint in LEAVES.items() if hint == "JSON"}
TIMES = {name for name, hint in LEAVES.items() if hint.endswith("Time")}


def fields_of(definition: str) -> Mapping[str, str]:
    """The API's names and types of a definition's fields."""
    fields = SCHEMA.definitions[definition]
    return {} if definition in EMPTY else typing.cast("Mapping[str, str]", fields)


def class_named(definition: str) -> type[Model]:
    module = importlib.import_module(f"trioformer.models.{module_of(definition)}")
    cls: type[Model] = getattr(module, class_of(definition))
    return cls


def python_names(cls: type[Model]) -> dict[str, str]:
    """The Python name of each name of the API."""
    return {field.json: name for name, field in plan_of(cls).fields.items()}


# ------------------------------------------------------------------------------------------------- samples


def sample_of(definition: str, numbers: Iterator[int], above: tuple[str, ...] = ()) -> Sample:
    """JSON with a different value in every field; an object that contains itself does so twice."""
    sample: Sample = {}
    for name, type_ in fields_of(definition).items():
        if above.count(inner_of(type_)) < 2:
            sample[name] = value_of(type_.removesuffix("?"), numbers, (*above, definition))
    return sample


def inner_of(type_: str) -> str:
    return type_.strip("[]{}?")


def value_of(type_: str, numbers: Iterator[int], above: tuple[str, ...]) -> Any:
    items = 2 if len(above) < 4 else 1
    number = next(numbers)
    if type_[0] == "[":
        return [value_of(type_[1:-1], numbers, above) for _ in range(items)]
    if type_[0] == "{":
        return {f"key/{next(numbers)}": value_of(type_[1:-1], numbers, above) for _ in range(items)}
    if type_ in JSON_LEAVES:
        return {"f:a": {".": {}}, "list": [number, None, {"x": [True]}]}
    if type_ in TIMES:
        fraction = ".123456" if type_.endswith("MicroTime") else ""
        return f"2024-05-01T10:{number // 60 % 60:02}:{number % 60:02}{fraction}Z"
    if LEAVES.get(type_) == "Quantity":
        return f"{number}m"
    if LEAVES.get(type_) == "int | str":
        return number if number % 2 else f"port-{number}"
    plain = {
        "string": f"text-{number}é",
        "integer": number,
        "number": number + 0.5,
        "boolean": True,
        "bytes": base64.b64encode(b"\xff%d" % number).decode(),
    }
    return plain[type_] if type_ in plain else sample_of(type_, numbers, above)


def expected(value: Any, type_: str) -> Any:
    """The decoded value of a sample's value; objects are unchanged."""
    if type_[0] == "[":
        return tuple(expected(item, type_[1:-1]) for item in value)
    if type_[0] == "{":
        return {key: expected(item, type_[1:-1]) for key, item in value.items()}
    if type_ in JSON_LEAVES:
        return frozen(value)
    if type_ in TIMES:
        return datetime.fromisoformat(value)
    if LEAVES.get(type_) == "Quantity":
        return Quantity(value)
    return base64.b64decode(value) if type_ == "bytes" else value


def frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: frozen(item) for key, item in value.items()}
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def is_part(type_: str) -> bool:
    """Whether a field is an object, or a list or map of objects."""
    return inner_of(type_) in DEFINITIONS


def inject(definition: str, sample: Sample) -> Sample:
    """Add an unknown field to every object."""
    injected: Sample = {"anUnknownField": {"deep": [1, None]}}
    for name, value in sample.items():
        type_ = fields_of(definition)[name]
        injected[name] = each_part(value, inner_of(type_)) if is_part(type_) else value
    return injected


def each_part(value: Any, definition: str) -> Any:
    if isinstance(value, list):
        return [inject(definition, item) for item in value]
    names = fields_of(definition)
    if names.keys() & value.keys() or not value:
        return inject(definition, value)
    return {key: inject(definition, item) for key, item in value.items()}


SAMPLES = {kind: sample_of(definition, itertools.count()) for kind, definition in KINDS.items()}
INJECTED = {kind: inject(definition, SAMPLES[kind]) for kind, definition in KINDS.items()}


# ------------------------------------------------------------------------------------------------- shape


@pytest.mark.parametrize("module", BY_MODULE)
def test_every_definition_has_a_class_with_exactly_its_fields(module: str) -> None:
    for definition in BY_MODULE[module]:
        cls = class_named(definition)
        wanted = {*fields_of(definition)}
        if issubclass(cls, KubernetesObject):
            wanted |= {"apiVersion", "kind", "metadata"}
        assert python_names(cls).keys() == wanted, definition


@pytest.mark.parametrize("module", sorted(MODULES.values()))
def test_modules_export_their_classes(module: str) -> None:
    held = importlib.import_module(f"trioformer.models.{module}")
    own = {name for name, value in vars(held).items() if getattr(value, "__module__", None) == held.__name__}
    assert {*held.__all__} == own == {class_of(definition) for definition in BY_MODULE[module]}


def test_names_are_pythonic() -> None:
    names = {key: name for definition in DEFINITIONS for key, name in python_names(class_named(definition)).items()}
    assert all(name.isidentifier() and name == name.lower() for name in names.values())
    assert {key: names[key] for key in NAMES} == NAMES


NAMES = {
    "podIPs": "pod_ips",
    "externalIPs": "external_ips",
    "targetWWNs": "target_wwns",
    "diskURI": "disk_uri",
    "podCIDRs": "pod_cidrs",
    "setHostnameAsFQDN": "set_hostname_as_fqdn",
    "openAPIV3Schema": "open_api_v3_schema",
    "fieldsV1": "fields_v1",
    "x-kubernetes-list-type": "x_kubernetes_list_type",
    "$ref": "ref",
    "from": "from_",
    "int": "int_",
}


# ------------------------------------------------------------------------------------------------- kinds


def test_every_resource_of_the_schema_is_registered() -> None:
    listed = {(info.api_version, info.plural): info for info in builtin_resources(beta=True)}
    wanted = {(one.api_version, one.name): one for one in SCHEMA.resources if "/" not in one.name}
    assert listed.keys() == wanted.keys()
    stable = builtin_resources()
    for half in (stable, builtin_resources(beta=True)[len(stable) :]):
        assert list(half) == sorted(half, key=lambda i: (i.group, i.version, i.plural))
    for key, info in listed.items():
        one = wanted[key]
        assert f"{info.api_version} {info.kind}" == one.kind
        assert (info.namespaced, info.singular, info.verbs) == (one.namespaced, one.singular, one.verbs)
        assert (info.short_names, info.categories) == (one.short_names, one.categories)
        mine = (sub.name.partition("/") for sub in SCHEMA.resources if sub.api_version == info.api_version)
        assert info.subresources == tuple(sub for plural, _, sub in mine if sub and plural == info.plural)
        kind = builtin_kind(info.api_version, info.kind)
        assert resource_of(kind) is info
        assert (kind().api_version, kind().kind) == (info.api_version, info.kind)


# ------------------------------------------------------------------------------------------------- reading


def assert_reads(model: Model, sample: Sample, definition: str) -> None:
    """Read every attribute below a model and compare it with the JSON."""
    names = python_names(type(model))
    for key, value in sample.items():
        type_ = fields_of(definition)[key].removesuffix("?")
        found = getattr(model, names[key])
        if not is_part(type_):
            wanted = expected(value, type_)
            assert (found, type(found)) == (wanted, type(found)), f"{definition}.{key}"
        elif type_[0] == "[":
            for part, item in zip(found, value, strict=True):
                assert_reads(part, item, inner_of(type_))
        elif type_[0] == "{":
            assert found.keys() == value.keys()
            for name, part in found.items():
                assert_reads(part, value[name], inner_of(type_))
        else:
            assert_reads(found, value, type_)


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_reads_as_its_json(kind: str) -> None:
    definition, sample = KINDS[kind], SAMPLES[kind]
    raw = json.dumps(sample).encode()
    model = from_json(class_named(definition), raw)
    assert encode(model) == raw
    assert_reads(model, sample, definition)
    assert encode(model) == raw
    assert model == from_json(class_named(definition), json.dumps(sample, indent=1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_object_encodes_every_attribute(kind: str) -> None:
    """The new object is made from the attributes, without the bytes of the old one."""
    definition, sample = KINDS[kind], SAMPLES[kind]
    read = from_json(class_named(definition), json.dumps(sample))
    rebuilt = rebuild(read)
    assert rebuilt == read
    assert json.loads(encode(rebuilt)) == sample


def rebuild(value: Any) -> Any:
    if isinstance(value, Model):
        fields = (a.name for a in attrs.fields(type(value)) if a.name != "_origin")
        return type(value)(**{name: rebuild(getattr(value, name)) for name in fields})
    if isinstance(value, tuple):
        return tuple(map(rebuild, value))
    return {key: rebuild(item) for key, item in value.items()} if isinstance(value, dict) else value


# ------------------------------------------------------------------------------------------------- changing


def new_values(cls: type[Model], name: str, type_: str) -> list[tuple[Any, Any]]:
    """New values of a field, in Python and in JSON; None in JSON means absent."""
    kind, optional = type_.removesuffix("?"), plan_of(cls).fields[name].default is None
    if kind[0] == "[":
        return [((), None), ([], None)]
    if kind[0] == "{":
        return [({}, None)]
    if kind in JSON_LEAVES:
        return [({}, {}), ({"a": [1, {}]}, {"a": [1, {}]}), (0, 0), ("", ""), (None, None)]
    if kind in TIMES:
        fraction = ".000000" if kind.endswith("MicroTime") else ""
        return [(datetime.fromisoformat("2030-01-01T00:00:00Z"), f"2030-01-01T00:00:00{fraction}Z"), (None, None)]
    if is_part(kind):
        empty = class_named(kind)()
        return [(empty, json.loads(encode(empty))), *([(None, None)] if optional else [])]
    leaf = {"Quantity": [(Quantity("9Gi"), "9Gi"), (None, None)], "int | str": [(0, 0), ("", ""), (None, None)]}
    plain: dict[str, list[tuple[Any, Any]]] = {
        "string": [("", ""), ("new", "new")],
        "integer": [(0, 0), (-1, -1)],
        "number": [(0.0, 0.0), (1e9, 1e9)],
        "boolean": [(False, False)],
        "bytes": [(b"", ""), (b"\x00", "AA==")],
    }
    return leaf[LEAVES[kind]] if kind in LEAVES else [*plain[kind], *([(None, None)] if optional else [])]


def replaced(sample: Sample, key: str, value: Any) -> Sample:
    return {k: v for k, v in {**sample, key: value}.items() if k != key or v is not None}


@pytest.mark.parametrize("module", BY_MODULE)
def test_every_field_can_be_changed(module: str) -> None:
    for definition in BY_MODULE[module]:
        cls, sample = class_named(definition), sample_of(definition, itertools.count())
        sample["anUnknownField"] = {"deep": [1, None]}
        raw = json.dumps(sample)
        for key in sample.keys() & fields_of(definition).keys():
            name = python_names(cls)[key]
            for new, wanted in new_values(cls, name, fields_of(definition)[key]):
                changed = from_json(cls, raw).evolve(**{name: new})
                assert json.loads(encode(changed)) == replaced(sample, key, wanted), f"{definition}.{key}"
                assert getattr(from_json(cls, encode(changed)), name) == getattr(changed, name)


def change(model: Model, sample: Sample, definition: str, data: st.DataObject) -> tuple[Model, Sample]:
    """Change one field at any level of a model, and the same one in a copy of the JSON."""
    keys = sorted(sample.keys() & fields_of(definition).keys())
    if not keys:
        return model, sample
    key = data.draw(st.sampled_from(keys), "field")
    type_ = fields_of(definition)[key]
    name, value, inner = python_names(type(model))[key], sample[key], inner_of(type_)
    found = getattr(model, name)
    new: Any
    wanted: Any
    if not is_part(type_) or not data.draw(st.booleans(), "go on"):
        new, wanted = data.draw(st.sampled_from(new_values(type(model), name, type_)), "new")
    elif type_[0] == "[":
        index = data.draw(st.integers(0, len(value) - 1), "index")
        part, wanted_part = change(found[index], value[index], inner, data)
        new = (*found[:index], part, *found[index + 1 :])
        wanted = [*value[:index], wanted_part, *value[index + 1 :]]
    elif type_[0] == "{":
        member = data.draw(st.sampled_from(sorted(value)), "key")
        part, wanted_part = change(found[member], value[member], inner, data)
        new, wanted = {**found, member: part}, {**value, member: wanted_part}
    else:
        new, wanted = change(found, value, inner, data)
    return model.evolve(**{name: new}), replaced(sample, key, wanted)


@given(kind=st.sampled_from(sorted(KINDS)), unknown_fields=st.booleans(), data=st.data())
def test_a_change_of_one_field_changes_no_other_field(kind: str, unknown_fields: bool, data: st.DataObject) -> None:
    sample = (INJECTED if unknown_fields else SAMPLES)[kind]
    before = copy.deepcopy(sample)
    model = from_json(class_named(KINDS[kind]), json.dumps(sample))
    changed, wanted = change(model, sample, KINDS[kind], data)
    assert json.loads(encode(changed)) == wanted
    assert json.loads(encode(model)) == before


@pytest.mark.parametrize("kind", KINDS)
def test_unknown_fields_survive_at_every_level(kind: str) -> None:
    cls, injected = class_named(KINDS[kind]), INJECTED[kind]
    model = from_json(cls, json.dumps(injected))
    assert json.loads(encode(model.evolve())) == injected
    assert json.loads(encode(evolve_everything(model))) == injected
    assert model != from_json(cls, json.dumps(SAMPLES[kind]))


def evolve_everything(value: Any) -> Any:
    """Evolve an object and all its parts without changing a field."""
    if isinstance(value, Model):
        fields = (a.name for a in attrs.fields(type(value)) if a.name != "_origin")
        return value.evolve(**{name: evolve_everything(getattr(value, name)) for name in fields})
    if isinstance(value, tuple):
        return tuple(map(evolve_everything, value))
    return {key: evolve_everything(item) for key, item in value.items()} if isinstance(value, dict) else value


# ------------------------------------------------------------------------------------------------- agreement


def pruned(sample: Any, rng: random.Random) -> Any:
    """Drop members of a sample at random, at every level."""
    if isinstance(sample, dict):
        return {key: pruned(value, rng) for key, value in sample.items() if rng.random() < 0.7}
    return [pruned(item, rng) for item in sample] if isinstance(sample, list) else sample


SAME: list[Callable[[Any], Any]] = [
    lambda model: model,
    copy.copy,
    copy.deepcopy,
    lambda model: pickle.loads(pickle.dumps(model)),
    evolve,
    lambda model: from_json(type(model), encode(model)),
]


def read_everything(value: Any) -> Any:
    """Decode an object and all its parts."""
    if isinstance(value, Model):
        for name in (a.name for a in attrs.fields(type(value)) if a.name != "_origin"):
            read_everything(getattr(value, name))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ():
        read_everything(item)
    return value


def parts_of(value: Any) -> list[Model]:
    if isinstance(value, Model):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return [part for item in items for part in parts_of(item)]


@given(kind=st.sampled_from(sorted(KINDS)), rng=st.randoms(use_true_random=False))
def test_lazy_and_decoded_objects_and_json_agree_in_any_order_of_access(kind: str, rng: random.Random) -> None:
    """In any order of reads, with copies, pickles and evolves between them."""
    definition = KINDS[kind]
    sample = {"metadata": {}} | pruned(SAMPLES[kind], rng)
    lazy = from_json(class_named(definition), json.dumps(sample))
    full = read_everything(from_json(class_named(definition), json.dumps(sample)))
    pool: list[tuple[Any, Any]] = [(lazy, full)]
    for _ in range(15):
        model, twin = rng.choice(pool)
        name = rng.choice(list(python_names(type(model)).values()))
        found, wanted = getattr(model, name), getattr(twin, name)
        assert found == wanted
        assert getattr(model, name) is found, "each read returns the same object"
        pool.extend(zip(parts_of(found), parts_of(wanted), strict=True))
        again = rng.choice(SAME)(model)
        assert again == twin
        pool.append((again, twin))
    assert lazy == full
    assert_reads(lazy, sample, definition)
    assert json.loads(encode(lazy)) == json.loads(encode(lazy.evolve())) == sample

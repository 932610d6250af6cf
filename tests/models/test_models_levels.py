"""Values with more levels than the library supports: whatever is done with them ends in DecodeError or succeeds.

A Python whose stack overflows dies, and different Pythons limit different calls, so each case runs in its own process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

import pytest

PROGRAM = '''
import copy, os, pickle, sys
from collections.abc import Mapping
import attrs
from trioformer.client._patch import patch_content
from trioformer.errors import DecodeError
from trioformer.models import (
    JSON, FrozenMap, KubernetesObject, Model, ResourceInfo, encode, from_dict, from_json, json_equal, to_dict,
    unstructured_kind,
)
from trioformer.models._internal import decode, dumps, find_undecodable, plain, scan_without_managed_fields
from trioformer.models._lazy import make
from trioformer.models._meta import encode_for_server
from trioformer.models._serde import canonical, loads
from trioformer.models._values import freeze
from trioformer.models.apiextensions_v1 import CustomResourceDefinition

levels, form = int(sys.argv[1]), sys.argv[2]
opening, closing = {"maps": ('{"a":', "}"), "lists": ("[", "]"), "both": ('[{"a":', "}]")}[form]
count = levels // 2 if form == "both" else levels
text = (opening * count + "1" + closing * count).encode()
value = 1
for number in range(levels):
    value = {"a": value} if form == "maps" or (form == "both" and number % 2 == 0) else [value]

RESOURCE = {"group": "example.com", "version": "v1", "kind": "Loose", "plural": "looses", "namespaced": True}
Loose = unstructured_kind(ResourceInfo(**RESOURCE))

@attrs.frozen
class Size:
    number: int = 0
    free: JSON = None

@attrs.frozen(kw_only=True, eq=False, repr=False)
class Spec(Model):
    name: str = ""
    size: Size = Size()
    free: JSON = None
    maps: Mapping[str, JSON] = FrozenMap()

@attrs.frozen(kw_only=True, eq=False, repr=False)
class Typed(KubernetesObject):
    __resource__ = ResourceInfo(**RESOURCE)
    spec: Spec = Spec()

META = b'{"metadata":{"name":"a","namespace":"b"},'
obj = META + b'"spec":' + text + b"}"
loose = make(Loose, obj)
same = make(Loose, META + b' "spec":' + text + b"}")
typed = make(Typed, META + b'"spec":{"name":"n","new":' + text + b',"free":' + text + b"}}")
sized = make(Typed, META + b'"spec":{"size":{"number":1,"free":' + text + b"}}}")
other = make(Typed, META + b'"spec":{"size":{"number":1,"new":' + text + b"}}}")
managed = b'{"metadata":{"name":"a", "managedFields" :' + text + b"}}"
schema = b'{"not":' * levels + b"{}" + b"}" * levels
versions = b'"versions":[{"name":"v1","schema":{"openAPIV3Schema":' + schema + b"}}]"
definition = make(CustomResourceDefinition, META + b'"spec":{"group":"g",' + versions + b"}}")

def outcome(expression):
    try:
        found = eval(expression)
        if isinstance(found, DecodeError):
            raise found
        if not isinstance(found, bool | int | type(None)):
            handle(found, calls=200)
        return "succeeded"
    except DecodeError as error:
        return "DecodeError" if len(str(error)) < 300 else "a long text"
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def handle(found, calls):
    """Do what programs do with any value, at the bottom of as many calls as an ordinary program has."""
    if calls:
        return handle(found, calls - 1)
    repr(found), found == pickle.loads(pickle.dumps(found)), copy.deepcopy(found), dumps(plain(found))
    if not isinstance(found, dict | list):
        hash(found)

for expression in sys.argv[3:]:
    print(expression, flush=True)  # in case that it ends the process
    print(outcome(expression), flush=True)
os._exit(0)  # without freeing the values
'''
DECODE = (
    "loose['spec']",
    "typed.spec.free",
    "sized.spec.size.free",
    "loads(text)",
    "decode(text)",
    "freeze(value)",
    "to_dict(loose)",
)
"""What decodes a value."""
USE = (
    "typed.spec.name",
    "sized.spec.size.number",
    "loose == same",
    "hash(loose)",
    "hash(typed.spec)",
    "repr(loose) and repr(typed.spec) and repr(definition.spec)",
    "pickle.loads(pickle.dumps(loose)) and None",
    "copy.deepcopy(loose) is loose",
    "canonical(text) and None",
    "json_equal(loose, same)",
    "json_equal(value, value)",
    "find_undecodable(loose)",
    "find_undecodable(typed)",
    "find_undecodable(definition)",
    "scan_without_managed_fields(managed) and None",
    "encode_for_server(loose) and None",
    "encode(typed.evolve(spec=typed.spec.evolve(name='x'))) and None",
    "encode(typed.spec.evolve(free=value)) and None",
    "encode(other.spec.evolve(size=Size(2))) and None",
    "Spec(free=value) and None",
    "loose.merge({'spec': {'x': 1}}) and None",
    "loose.merge({'spec': value}) and None",
    "Loose.of({'metadata': {'name': 'a'}, 'spec': value}) and None",
    "from_dict(Loose, {'spec': value}) and None",
    "from_json(Loose, obj) and None",
    "dumps(value) and None",
    "plain(value) and None",
    "patch_content({'spec': value}, 'merge') and None",
    "patch_content({'spec': value}, 'strategic') and None",
    "patch_content([{'value': value}], 'json') and None",
)
"""What else is done with objects and values."""


def outcomes(levels: int, form: str, expressions: Iterable[str]) -> dict[str, str]:
    """Evaluate expressions in a process of their own, and return how each ended."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(levels), form, *expressions]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} ended the process: {done.stderr[-500:]}"
    return dict(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize("form", ["maps", "lists", "both"])
def test_a_value_of_as_many_levels_as_are_supported_is_decoded(form: str) -> None:
    found = outcomes(126, form, DECODE)  # what is decoded may have two more around the value
    assert found == dict.fromkeys(DECODE, "succeeded")


@pytest.mark.parametrize("levels", [129, 100_000])
def test_a_value_of_more_levels_is_a_decode_error(levels: int) -> None:
    found = outcomes(levels, "maps", DECODE)
    expected = dict.fromkeys(DECODE, "DecodeError")
    if levels == 129:  # a dict of a whole object may have a few more, those around its fields
        expected["to_dict(loose)"] = "succeeded"
    assert found == expected


@pytest.mark.parametrize("form", ["maps", "lists"])
def test_a_dict_of_as_many_levels_as_an_object_may_have_can_be_handled(form: str) -> None:
    found = [outcomes(levels, form, ["to_dict(loose)"])["to_dict(loose)"] for levels in (134, 140)]
    assert found == ["succeeded", "DecodeError"]


@pytest.mark.parametrize("form", ["maps", "both"])
def test_a_value_of_a_hundred_levels_can_be_handled_and_changed(form: str) -> None:
    assert outcomes(100, form, USE) == dict.fromkeys(USE, "succeeded")


@pytest.mark.parametrize(("levels", "form"), [(900, "lists"), (9_000, "maps"), (100_000, "lists")])
def test_handling_a_value_of_any_levels_raises_no_foreign_error(levels: int, form: str) -> None:
    for expression, found in outcomes(levels, form, USE).items():
        is_ours = found in ("succeeded", "DecodeError") or (
            found.startswith("ValueError") and "too many levels" in found
        )
        assert is_ours, (expression, found)

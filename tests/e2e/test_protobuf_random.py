"""Every kind with random values in protobuf and JSON, as client-go writes and reads them."""

from __future__ import annotations

import importlib.resources
import json
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from tests.support.messages import (
    differences,
    find_model,
    message_differences,
    model_differences,
    model_of,
    with_unknown_everywhere,
    without_type_meta,
    without_unknown,
)
from trioformer.errors import DecodeError
from trioformer.models import from_json
from trioformer.models._internal import encode_request, envelope_of, open_envelope
from trioformer.models._lazy import Edits, Model, plan_of
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._plain import to_plain
from trioformer.models._protobuf._transcode import find_wire_type

M = TypeVar("M", bound=Model)

PROGRAM: Final = "protobuf-go"
SEEDS: Final = 20
LONG_SEEDS: Final = 200
PARTS: Final = ("TemplateSpec", "PersistentVolumeClaimTemplate")
"""The ends of the names of types with metadata that are not kinds."""
SHOWN: Final = 30
"""Differences in the text of a failure; each is often in many objects."""


class Filled(NamedTuple):
    """An object that Go has filled, and how a server that stores protobuf shows it in JSON."""

    api_version: str
    kind: str
    envelope: bytes
    original: bytes
    served: bytes


def fill(program: Path, seed: int) -> list[Filled]:
    """Return an object of each kind of client-go's scheme that the table has."""
    data = subprocess.run([program, "fill", str(seed)], capture_output=True, check=True, timeout=120).stdout
    found = zip(*[_parts(data)] * 5, strict=True)
    objects = [Filled(str(a, "utf-8"), str(b, "utf-8"), *others) for a, b, *others in found]
    return [each for each in objects if find_wire_type(each.api_version, each.kind) is not None]


def _parts(data: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(data):
        (size,) = struct.unpack_from(">I", data, position)
        position += 4 + size
        yield data[position - size : position]


def read_differences(filled: Filled) -> Iterator[str]:
    """Return a line for each difference between what we read from protobuf and JSON."""
    type_ = find_wire_type(filled.api_version, filled.kind)
    assert type_ is not None
    yield from message_differences(filled.envelope, filled.served, type_)
    cls = find_model(filled.api_version, filled.kind)
    if cls is not None:
        yield from model_differences(cls, filled.envelope, filled.served)


def written(filled: Filled) -> Filled:
    """Write an object from its JSON."""
    type_ = find_wire_type(filled.api_version, filled.kind)
    assert type_ is not None
    message = to_message(without_type_meta(filled.original), type_)
    return filled._replace(envelope=envelope_of(filled.api_version, filled.kind, message))


def changed(one: Filled, other: Filled, rng: random.Random) -> tuple[Filled, list[str]]:
    """Change a model whose message has an unknown field in each message inside of it, and write it.

    Returns:
        The message and the JSON of the changed object, and the differences that we find between them.
    """
    cls, type_ = find_model(one.api_version, one.kind), find_wire_type(one.api_version, one.kind)
    assert cls is not None
    assert type_ is not None
    newer = [model_of(cls, with_unknown_everywhere(open_envelope(each.envelope)[2], type_)) for each in (one, other)]
    known = [from_json(cls, each.served) for each in (one, other)]
    state = rng.getstate()
    mixed = mix(newer[0], newer[1], rng)
    rng.setstate(state)
    wanted = mix(known[0], known[1], rng)
    envelope, data = encode_request(mixed), encode_request(wanted)
    message = open_envelope(envelope)[2]
    found = list(without_unknown(message, type_))
    again = to_plain(to_message(without_type_meta(data), type_), type_)
    found += differences(to_plain(message, type_), again, "a change is written as ")
    return Filled(one.api_version, one.kind, envelope, data, data), found


def mix(one: M, other: M, rng: random.Random) -> M:
    """Change some fields of a model, and of models inside of it, to those of another one."""
    names = list(plan_of(type(one)).fields)
    changes: dict[str, Any] = {}
    for name in rng.sample(names, min(3, len(names))):
        try:
            mine, theirs = getattr(one, name), getattr(other, name)
        except DecodeError:  # a map with a null time, in both encodings
            continue
        if isinstance(theirs, Model) and isinstance(theirs._origin, Edits):
            continue  # the default of an absent field
        if isinstance(mine, Model) and isinstance(theirs, Model) and not isinstance(mine._origin, Edits):
            changes[name] = mix(mine, theirs, rng)
        elif isinstance(mine, tuple) and mine and theirs and isinstance(mine[0], Model):
            changes[name] = (mix(mine[0], theirs[-1], rng), *mine[1:], *theirs[1:])
        else:
            changes[name] = theirs
    return one.evolve(**changes)


def check(program: Path, objects: list[Filled]) -> Iterator[tuple[Filled, str]]:
    """Let Go read our protobuf of objects, and return each difference from their JSON."""
    sent: list[bytes] = []
    for each in objects:
        parts = (each.api_version.encode(), each.kind.encode(), each.envelope, each.original)
        sent += [struct.pack(">I", len(part)) + part for part in parts]
    done = subprocess.run([program, "check"], input=b"".join(sent), capture_output=True, check=True, timeout=120)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    for each, result in zip(objects, results, strict=True):
        if "error" in result:
            yield each, f"Go says {result['error']}"
        elif "found" in result:
            lines = list(differences(result["found"], result["wanted"], "Go reads "))
            yield from ((each, line) for line in lines or ["Go reads another object with the same JSON"])


for_seeds = pytest.mark.parametrize(
    "seed", [*range(SEEDS), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(SEEDS, LONG_SEEDS))]
)


@for_seeds
def test_every_kind_with_random_values_is_the_same_in_both_encodings(assets: Path, seed: int) -> None:
    objects = fill(assets / PROGRAM, seed)
    found = [(each, line) for each in objects for line in read_differences(each)]
    found += check(assets / PROGRAM, [written(each) for each in objects])
    assert [f"{each.kind} of {each.api_version}: {line}" for each, line in found][:SHOWN] == []


@for_seeds
def test_changes_are_written_and_keep_unknown_fields_everywhere(assets: Path, seed: int) -> None:
    rng = random.Random(seed)
    objects = [each for each in fill(assets / PROGRAM, seed) if find_model(each.api_version, each.kind) is not None]
    others = {(each.api_version, each.kind): each for each in fill(assets / PROGRAM, seed + 1)}
    found: list[tuple[Filled, str]] = []
    sent: list[Filled] = []
    for each in objects:
        filled, lines = changed(each, others[each.api_version, each.kind], rng)
        found += [(each, line) for line in lines]
        sent.append(filled)
    found += check(assets / PROGRAM, sent)
    assert [f"{each.kind} of {each.api_version}: {line}" for each, line in found][:SHOWN] == []


def test_the_random_objects_are_of_every_kind_of_the_table(assets: Path) -> None:
    types = {find_wire_type(each.api_version, each.kind) for each in fill(assets / PROGRAM, 0)}
    names = {f"{type_.module}.{type_.name}" for type_ in types if type_ is not None}
    assert {name for name in with_metadata() if name not in names} == set()


def with_metadata() -> Iterator[str]:
    """Return the types of the table that are kinds or lists."""
    for file in (importlib.resources.files("trioformer.models._protobuf") / "tables").iterdir():
        for line in file.read_text("utf-8").splitlines():
            name, _, fields = line.partition(":")
            if fields.startswith("1metadata ") and not name.endswith(PARTS):
                yield f"{file.name.removesuffix('.txt')}.{name}"

"""The objects in protobuf and JSON that Kubernetes keeps of each kind, of this release and of older ones."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.messages import (
    differences,
    find_model,
    message_differences,
    model_differences,
    model_of,
    without_type_meta,
)
from trioformer.models import from_json
from trioformer.models._internal import encode_request, open_envelope
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._plain import to_plain
from trioformer.models._protobuf._tables import WireType
from trioformer.models._protobuf._transcode import find_wire_type

MODULE: Final = Path(__file__).with_name("protobuf_go")
LEAST_TYPES: Final = 110
LEAST_PAIRS: Final = 450
AFTER: Final = ".after_roundtrip"
"""The end of the names of files with what this release makes of the object of an older one."""


class Pair(NamedTuple):
    """An object of a release in both encodings, and its JSON from this release if that is another."""

    name: str
    api_version: str
    kind: str
    type_: WireType
    envelope: bytes
    json: bytes
    after: bytes | None


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    """All pairs of types that the table has."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", "k8s.io/api"], cwd=MODULE, capture_output=True, check=True, timeout=300
    )
    return list(_pairs(Path(json.loads(done.stdout)["Dir"]) / "testdata"))


def _pairs(folder: Path) -> Iterator[Pair]:
    for file in sorted(folder.glob("*/*.json")):
        if not file.with_suffix(".pb").exists():
            continue
        envelope = file.with_suffix(".pb").read_bytes()
        api_version, kind, _ = open_envelope(envelope)
        type_ = find_wire_type(api_version, kind)
        if type_ is not None:
            after = file.with_name(f"{file.stem}{AFTER}.json")
            shown = after.read_bytes() if after.exists() else None
            name, data = f"{file.parent.name}/{file.name}", file.read_bytes()
            yield Pair(name, api_version, kind, type_, envelope, as_served(data), shown and as_served(shown))


def as_served(data: bytes) -> bytes:
    """Return the JSON of kube-apiserver, which sets the kind of a StatefulSet's claims."""
    found = json.loads(data)
    if found["kind"] == "StatefulSet":
        for claim in found["spec"]["volumeClaimTemplates"]:
            claim.update(kind="PersistentVolumeClaim", apiVersion="v1")
    return json.dumps(found).encode()


def test_there_are_pairs_of_this_release_and_of_older_ones(pairs: list[Pair]) -> None:
    assert len({pair.type_ for pair in pairs}) >= LEAST_TYPES
    assert len(pairs) >= LEAST_PAIRS
    assert len({pair.name.partition("/")[0] for pair in pairs}) >= 3


def test_the_message_reads_like_the_json_and_is_written_from_it(pairs: list[Pair]) -> None:
    found = [
        f"{pair.name}: {line}"
        for pair in pairs
        if pair.after is None
        for line in message_differences(pair.envelope, pair.json, pair.type_)
    ]
    assert found == []


def test_the_model_of_the_message_equals_that_of_the_json(pairs: list[Pair]) -> None:
    found: list[str] = []
    for pair in pairs:
        cls = find_model(pair.api_version, pair.kind)
        if cls is not None and pair.after is None:
            found += [f"{pair.name}: {line}" for line in model_differences(cls, pair.envelope, pair.json)]
    assert found == []


def test_fields_that_this_release_has_not_are_named_and_kept(pairs: list[Pair]) -> None:
    kept = 0
    for pair in pairs:
        if pair.after is None:
            continue
        unknown: list[str] = []
        message = open_envelope(pair.envelope)[2]
        read = to_plain(message, pair.type_, unknown=unknown)
        assert list(differences(read, without_type_meta(pair.after))) == [], pair.name
        lost: list[str] = []
        written = to_plain(to_message(without_type_meta(pair.json), pair.type_, lost), pair.type_)
        assert list(differences(written, read)) == [], pair.name
        assert len(lost) == len(unknown), pair.name
        cls = find_model(pair.api_version, pair.kind)
        if unknown and cls is not None:
            model = model_of(cls, message)
            assert model != from_json(cls, pair.json)
            assert open_envelope(encode_request(model)) == (pair.api_version, pair.kind, message)
            kept += 1
    assert kept > 0

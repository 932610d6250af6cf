"""What a part of an object keeps in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from trioformer.models import Model, OwnerReference, encode, from_dict, from_json
from trioformer.models.core_v1 import Pod

ROOM = 1_000_000
OWNER = {"kind": "ReplicaSet", "name": "web", "uid": "u1"}


@pytest.fixture
def traced() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def owner_of_a_large_pod() -> OwnerReference:
    metadata = {"name": "a", "annotations": {"large": "x" * ROOM}, "ownerReferences": [OWNER]}
    return from_dict(Pod, {"metadata": metadata}).metadata.owner_references[0]


@pytest.mark.parametrize(
    ("keep", "is_pinned"),
    [(lambda owner: owner, True), (lambda owner: from_json(type(owner), encode(owner)), False)],
    ids=["part", "copy"],
)
def test_a_part_keeps_the_bytes_of_its_object_and_a_copy_does_not(
    keep: Callable[[OwnerReference], Model], is_pinned: bool, traced: None
) -> None:
    kept = keep(owner_of_a_large_pod())
    gc.collect()
    assert (tracemalloc.get_traced_memory()[0] > ROOM) is is_pinned
    assert kept == from_dict(OwnerReference, OWNER)

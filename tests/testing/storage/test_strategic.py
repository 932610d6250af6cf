"""Strategic merge patches; ``tests/e2e/contract/test_apply.py`` has what kube-apiserver does."""

from __future__ import annotations

from typing import Any

import pytest

from trioformer.testing._storage._field_types import named_type
from trioformer.testing._storage._release import INSTALLED
from trioformer.testing._storage._status import APIStatusError
from trioformer.testing._storage._strategic import strategic_merge

POD_SPEC: dict[str, Any] = {
    "containers": [{"name": "web", "image": "a", "ports": [{"containerPort": 80}]}, {"name": "log"}],
    "imagePullSecrets": [{"name": "p"}],
}


def merged(patch: dict[str, Any]) -> dict[str, Any]:
    return strategic_merge(named_type(INSTALLED, "core.v1.PodSpec"), POD_SPEC, patch)


def test_directives_replace_delete_and_retain() -> None:
    assert merged({"$patch": "replace", "hostname": "x"}) == {"hostname": "x"}
    assert merged({"$patch": "delete"}) == {}
    assert merged({"$retainKeys": ["hostname"], "hostname": "x"}) == {"hostname": "x"}
    assert merged({"containers": None}) == {"imagePullSecrets": [{"name": "p"}]}


def test_what_the_object_has_not_is_taken_without_directives_and_nulls() -> None:
    patch = {"securityContext": {"a": None, "b": {"$patch": "delete"}, "c": [{"$patch": "delete"}, 1]}}
    assert merged(patch)["securityContext"] == {"c": [1]}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"$patch": "frob"}, 500, "unknown patch type: frob in map: map[$patch:frob]"),
        ({"$patch": [{"a": "b"}]}, 500, "unknown patch type: [map[a:b]] in map: map[$patch:[map[a:b]]]"),
        (
            {"containers": [{"image": "b"}]},
            500,
            "map: map[image:b] does not contain declared merge key: name",
        ),
        ({"containers": [[1]]}, 422, "lists of lists are not supported"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, 500, "merging lists cannot yet be specified in the patch"),
        ({"$retainKeys": 5}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["x"], "hostname": "y"}, 400, "invalid patch format of retainKeys"),
        ({"$setElementOrder/containers": 5}, 400, "invalid patch format of setElementOrder list"),
    ],
)
def test_patches_that_are_not_valid_are_refused(patch: Any, code: int, message: str) -> None:
    with pytest.raises(APIStatusError) as caught:
        merged(patch)
    assert (caught.value.code, caught.value.status["message"]) == (code, message)

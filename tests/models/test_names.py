"""The names that URL paths consist of: what Kubernetes allows, and nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from trioformer.models import KubernetesObject, ResourceInfo, resource_of, unstructured_kind
from trioformer.models._kinds import builtin_resources

WIDGETS = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)
NO_SEGMENTS = ["", ".", "..", "a/b", "/", "%2f", "a%"]
NO_LABELS = [
    *NO_SEGMENTS,
    "widgets#",
    "widgets?watch=true",
    "../../api/v1/secrets",
    "wid gets",
    "Widgets",
    "wídgets",
    "a-",
    "a\n",
    "\x1b[2J",
    "\ud800",
    "a" * 64,
]
NO_GROUPS = [
    "e.io/../../api/v1",
    "e.io#",
    "e..io",
    "e.io.",
    "e.io?",
    "/",
    ".",
    "a" * 64 + ".io",
    ".".join(["a" * 62] * 5),
    "e\u202eio",
]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("group", value) for value in NO_GROUPS),
        *(("version", value) for value in [*NO_LABELS, "1v"]),
        *(("plural", value) for value in NO_LABELS),
        *(
            ("kind", value)
            for value in ["", "Wid get", "1Widget", "Widget/", "a.b", "-A", "K" * 64, "\x1b", "K\u212a", "\u0131"]
        ),
        *(("subresources", ("status", value)) for value in NO_SEGMENTS),
    ],
)
def test_a_resource_with_a_name_that_changes_the_path_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{field.removesuffix('s')}") as caught:
        attrs.evolve(WIDGETS, **{field: value})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("field", ["group", "version", "kind", "plural"])
@pytest.mark.parametrize("value", [None, 7, b"widgets"])
def test_a_resource_whose_name_is_no_string_is_refused(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"the {field} of a resource must be a string"):
        attrs.evolve(WIDGETS, **{field: value})


def test_the_names_that_kubernetes_allows_are_accepted() -> None:
    for info in builtin_resources():
        assert attrs.evolve(info) == info
    names = {
        "group": "a-1.b.c",
        "version": "v1alpha1",
        "kind": "My-Kind2",
        "plural": "2-widgets",
        "subresources": ("a_b",),
    }
    assert attrs.evolve(WIDGETS, **names).path() == "/apis/a-1.b.c/v1alpha1/2-widgets"
    longest = attrs.evolve(WIDGETS, group=".".join(["a" * 63] * 3) + "." + "b" * 61, plural="a" * 63, kind="K" * 63)
    assert len(longest.group) == 253


def test_every_way_to_declare_a_kind_checks_its_names() -> None:
    with pytest.raises(ValueError, match="the plural of a resource"):
        unstructured_kind("example.com/v1", "Widget", plural="widgets#", namespaced=True)
    with pytest.raises(ValueError, match="the group of a resource"):
        unstructured_kind("e.io/../../api/v1", "Secret", plural="secrets", namespaced=True)
    with pytest.raises(ValueError, match="the plural of a resource"):

        @attrs.frozen(kw_only=True)
        class Widget(KubernetesObject):
            __resource__ = ResourceInfo(group="e.io", version="v1", kind="Widget", plural="widgets#", namespaced=True)

    assert resource_of(unstructured_kind(WIDGETS)) == WIDGETS

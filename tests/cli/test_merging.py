"""What an object becomes when a changed manifest is applied: cases of kubectl's three-way merge."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from trioformer.cli._merging import LAST_APPLIED, annotated, merge_manifest, with_annotation

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
CUSTOM = {"apiVersion": "example.com/v1", "kind": "Website"}


def merged(head: dict[str, str], last: str, wanted: str, live: str) -> Any:
    """Merge specs that are written as YAML."""
    states = [{**head, "spec": yaml.safe_load(text)} for text in (last, wanted, live)]
    return merge_manifest(*states)["spec"]


def merged_pod(last: str, wanted: str, live: str) -> Any:
    specs = ("{template: {spec: " + text + "}}" for text in (last, wanted, live))
    return merged(DEPLOYMENT, *specs)["template"]["spec"]


@pytest.mark.parametrize(
    ("last", "wanted", "live", "expected"),
    [
        ("{a: 1}", "{a: 2}", "{a: 1, b: 3}", "{a: 2, b: 3}"),
        ("{a: 1, b: 2}", "{a: 1}", "{a: 1, b: 2, c: 3}", "{a: 1, c: 3}"),
        ("{}", "{a: null}", "{a: 1, b: 2}", "{b: 2}"),
        ("{}", "{a: {b: null, c: 1}}", "{}", "{a: {c: 1}}"),
        ("{a: {b: 1, c: 1}}", "{a: {b: 1}}", "{a: {b: 1, c: 1, d: 1}}", "{a: {b: 1, d: 1}}"),
        ("{a: [1, 2]}", "{a: [2, 3]}", "{a: [1, 2, 9]}", "{a: [2, 3]}"),
        ("{a: [{name: x}]}", "{a: [{name: x, b: 1}]}", "{a: [{name: x, c: 2}, {name: y}]}", "{a: [{name: x, b: 1}]}"),
        ("{a: {b: 1}}", "{a: 3}", "{a: {b: 1}}", "{a: 3}"),
    ],
    ids=["set", "removed", "null", "null in a new map", "inner", "list", "list of objects", "another type"],
)
def test_maps_of_a_custom_kind_are_merged_and_its_lists_replaced(
    last: str, wanted: str, live: str, expected: str
) -> None:
    assert merged(CUSTOM, last, wanted, live) == yaml.safe_load(expected)


@pytest.mark.parametrize(
    ("last", "wanted", "live", "expected"),
    [
        (
            "{containers: [{name: a, image: '1'}]}",
            "{containers: [{name: a, image: '2'}]}",
            "{containers: [{name: proxy}, {name: a, image: '1', imagePullPolicy: Always}]}",
            "{containers: [{name: proxy}, {name: a, image: '2', imagePullPolicy: Always}]}",
        ),
        (
            "{containers: [{name: a}, {name: b}]}",
            "{containers: [{name: c}, {name: a}]}",
            "{containers: [{name: a, image: x}, {name: b, image: y}]}",
            "{containers: [{name: c}, {name: a, image: x}]}",
        ),
        (
            "{containers: [{name: a, env: [{name: A, value: '1'}, {name: B}]}]}",
            "{containers: [{name: a, env: [{name: B, value: '2'}]}]}",
            "{containers: [{name: a, env: [{name: A, value: '1'}, {name: B}, {name: C}]}]}",
            "{containers: [{name: a, env: [{name: B, value: '2'}, {name: C}]}]}",
        ),
        (
            "{containers: [{name: a, args: [x, y]}]}",
            "{containers: [{name: a, args: [z]}]}",
            "{containers: [{name: a, args: [x, y]}]}",
            "{containers: [{name: a, args: [z]}]}",
        ),
        (
            "{volumes: [{name: v}]}",
            "{volumes: [{name: v, configMap: {name: c}}]}",
            "{volumes: [{name: v, emptyDir: {}}, {name: token}]}",
            "{volumes: [{name: v, configMap: {name: c}}, {name: token}]}",
        ),
        (
            "{containers: [{name: a}]}",
            "{containers: [x]}",
            "{containers: [{name: a}, {name: b}]}",
            "{containers: [x]}",
        ),
    ],
    ids=["kept", "in the order of the manifest", "inner lists", "plain list", "retained keys", "no objects"],
)
def test_lists_of_a_built_in_kind_are_merged_by_the_key_of_their_items(
    last: str, wanted: str, live: str, expected: str
) -> None:
    assert merged_pod(last, wanted, live) == yaml.safe_load(expected)


def test_what_the_server_has_added_for_the_old_type_of_a_strategy_goes() -> None:
    live = "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}"
    assert merged(DEPLOYMENT, "{}", "{strategy: {type: Recreate}}", live) == {"strategy": {"type": "Recreate"}}
    assert merged(DEPLOYMENT, "{}", "{strategy: {}}", live) == yaml.safe_load(live)


def test_ports_with_the_same_number_are_told_apart_by_their_protocol() -> None:
    service = {"apiVersion": "v1", "kind": "Service"}
    both = "{ports: [{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53}]}"
    live = "{ports: [{name: udp, port: 53, protocol: UDP, nodePort: 1}, {name: tcp, port: 53, protocol: TCP}]}"
    found = merged(service, both, both, live)
    assert found == yaml.safe_load(live)


def test_a_set_keeps_what_others_have_added() -> None:
    states = [{**CUSTOM, "metadata": {"finalizers": each}} for each in (["a", "b"], ["b", "c"], ["a", "b", "x"])]
    for state in states:
        state.update({"apiVersion": "v1", "kind": "ConfigMap"})
    assert merge_manifest(*states)["metadata"]["finalizers"] == ["b", "c", "x"]


def test_a_selector_that_is_replaced_as_a_whole_is() -> None:
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    live = "{selector: {matchLabels: {a: b}}}"
    assert merged(budget, "{}", "{selector: {matchLabels: {c: d}}}", live) == {"selector": {"matchLabels": {"c": "d"}}}


def test_the_annotation_is_the_manifest_as_kubectl_writes_it() -> None:
    manifest = {
        **CUSTOM,
        "metadata": {"name": "a", "annotations": {"b": "<&>", LAST_APPLIED: "old"}},
        "spec": {"x": 1.0},
    }
    text = annotated(manifest)["metadata"]["annotations"][LAST_APPLIED]
    assert text == (
        '{"apiVersion":"example.com/v1","kind":"Website","metadata":{"annotations":{"b":"\\u003c\\u0026\\u003e"},'
        '"name":"a"},"spec":{"x":1}}\n'
    )
    assert json.loads(text)["metadata"] == with_annotation(manifest, None)["metadata"]

"""Listers: selectors with the rules of the API server, look-ups without a scan, and read-only access.

Against client-go's ``listers_test.go``; the indexer is tested in ``test_indexer.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from trioformer import Client, SharedInformerFactory
from trioformer.cache import Lister, annotation_index, field_index, label_index
from trioformer.cache.store._indexer import NAMESPACE_INDEX, Indexer, IndexFunc
from trioformer.controller import Request
from trioformer.errors import DecodeError, NotFoundError, NotInCacheError, SelectorError
from trioformer.models import (
    FieldSelector,
    KubernetesObject,
    LabelSelector,
    ResourceInfo,
    from_dict,
    from_json,
    key_of,
    metadata_kind,
)
from trioformer.models._internal import make_object
from trioformer.models._kinds import builtin_kind, builtin_resources
from trioformer.models.apps_v1 import Deployment
from trioformer.models.core_v1 import Namespace, Node, Pod, Secret, Service
from trioformer.models.rbac_v1 import ClusterRole
from trioformer.models.resource_v1 import ResourceSlice
from trioformer.testing import APIServer


def made(
    kind: type[KubernetesObject],
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> Any:
    metadata = {"name": name, "labels": labels or {}} | ({"namespace": namespace} if namespace else {})
    return from_dict(kind, {"metadata": metadata, **more})


def pod(name: str, namespace: str = "default", *, labels: Mapping[str, str] | None = None, **more: Any) -> Pod:
    obj: Pod = made(Pod, name, namespace=namespace, labels=labels, **more)
    return obj


def lister_of(
    kind: type[Any] | None,
    *objects: Any,
    indexers: Mapping[str, IndexFunc[Any]] | None = None,
    synced: bool = True,
    name: str = "Pod",
) -> Lister[Any]:
    indexer: Indexer[Any] = Indexer(indexers)
    for obj in objects:
        indexer.put(key_of(obj), obj)
    return Lister._create(name, indexer, lambda: synced, kind)


def names(objects: tuple[KubernetesObject, ...]) -> list[str]:
    return [key_of(obj) for obj in objects]


PODS = (
    pod(
        "a",
        labels={"app": "web", "tier": "1"},
        spec={"nodeName": "n1"},
        status={"phase": "Running", "podIP": "10.0.0.1"},
    ),
    pod("b", labels={"app": "db"}, spec={"nodeName": "n2", "hostNetwork": True}, status={"phase": "Pending"}),
    pod("a", "other", labels={"app": "web"}, spec={"hostNetwork": False}),
    pod("c", "other"),
)
A, B, FAR_A, C = "default/a", "default/b", "other/a", "other/c"


# --- namespaces ---

LISTS: list[Callable[[Lister[Any], str], object]] = [
    lambda objects, namespace: objects.list(namespace=namespace),
    lambda objects, namespace: objects.list(
        namespace=namespace, label_selector="app", field_selector="metadata.name=a"
    ),
    lambda objects, namespace: objects.by_index(NAMESPACE_INDEX, namespace),
    lambda objects, namespace: objects.index_keys(NAMESPACE_INDEX, namespace),
]


@pytest.mark.parametrize("read", LISTS)
def test_a_namespace_of_which_there_can_be_no_objects_is_an_error(read: Callable[[Lister[Any], str], object]) -> None:
    with pytest.raises(ValueError, match="must not be empty; pass None"):
        read(lister_of(Pod, *PODS), "")
    nodes = lister_of(Node, made(Node, "n1"), name="Node")
    with pytest.raises(ValueError, match="nodes are not namespaced"):
        read(nodes, "default")
    assert not read(lister_of(Pod, *PODS), "no-such-namespace")
    # Kubernetes writes an empty namespace for a cluster-scoped object.
    assert nodes.get("n1", namespace="") is nodes.get(Request("", "n1")) is not None


# --- selectors ---


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", [A, FAR_A]),
        ("app==web,tier", [A]),
        ("app in (web, db),!tier", [B, FAR_A]),
        ("app notin (web)", [B, C]),
        ("app!=web", [B, C]),
        ("tier>0", [A]),
        ("", [A, B, FAR_A, C]),
        (None, [A, B, FAR_A, C]),
        ({"app": "web", "tier": "1"}, [A]),
        (LabelSelector.parse("!app"), [C]),
    ],
)
def test_labels_are_selected_in_any_form_of_a_selector(
    selector: LabelSelector | Mapping[str, str] | str | None, expected: list[str]
) -> None:
    """client-go: TestListAll"""
    assert names(lister_of(Pod, *PODS).list(label_selector=selector)) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=a", [A, FAR_A]),
        ("metadata.name==a,metadata.namespace=other", [FAR_A]),
        ("metadata.name!=a", [B, C]),
        ("metadata.namespace=other", [FAR_A, C]),
        ("metadata.namespace!=other", [A, B]),
        ("metadata.namespace=", []),
        ("metadata.namespace=nowhere", []),
        ("metadata.name=nobody", []),
        ("metadata.name=", []),
        ("metadata.name=default/a", []),
        ("metadata.name=a,metadata.name=b", []),
        ("metadata.name=a,metadata.name!=a", []),
        ("metadata.namespace=other,metadata.namespace=default", []),
        ("spec.nodeName=n1", [A]),
        ("spec.host=n1", [A]),
        ("spec.nodeName=", [FAR_A, C]),
        ("spec.nodeName!=n1", [B, FAR_A, C]),
        ("spec.hostNetwork=true", [B]),
        ("spec.hostNetwork=false", [A, FAR_A, C]),
        ("spec.hostNetwork=", []),
        ("status.phase=Running", [A]),
        ("status.phase!=Running,metadata.namespace=default", [B]),
        ("status.podIP=10.0.0.1", [A]),
        ("status.podIPs=", [A, B, FAR_A, C]),
        ("", [A, B, FAR_A, C]),
        (None, [A, B, FAR_A, C]),
        ({"metadata.namespace": "default", "status.phase": "Pending"}, [B]),
        (FieldSelector.parse("spec.nodeName=n2"), [B]),
    ],
)
def test_fields_are_selected_as_the_api_server_compares_them(
    selector: FieldSelector | Mapping[str, str] | str | None, expected: list[str]
) -> None:
    assert names(lister_of(Pod, *PODS).list(field_selector=selector)) == expected
    assert names(lister_of(None, *PODS).list(field_selector=selector)) == expected


LABELS = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["", "a", "b"]), "tier": st.sampled_from("xy")})
STATES = st.tuples(st.sampled_from(["one", "two"]), st.sampled_from("abcde"), LABELS | st.none())
REQUIREMENTS = st.sampled_from(
    [
        "app=a",
        "app=",
        "app==none",
        "app!=a",
        "app in (a,b)",
        "app in (,b,none)",
        "app notin (a)",
        "app",
        "!app",
        "tier=x",
        "tier in (x,y)",
        "other=z",
        "other in (z)",
    ]
)
STEPS = st.tuples(st.sampled_from(["put", "swap"]), st.lists(STATES, min_size=4, max_size=12))


@given(
    st.lists(STEPS, min_size=1, max_size=4),
    st.lists(REQUIREMENTS, min_size=1, max_size=3),
    st.sampled_from([None, "one", "two", "three"]),
    st.sampled_from([None, "status.phase=", "metadata.name=a", "metadata.name!=a"]),
)
async def test_a_label_index_changes_no_result(
    steps: list[tuple[str, list[tuple[str, str, dict[str, str] | None]]]],
    requirements: list[str],
    namespace: str | None,
    fields: str | None,
) -> None:
    plain: Indexer[Pod] = Indexer()
    indexed: Indexer[Pod] = Indexer({"by-app": label_index("app"), "by-annotation": annotation_index("tier")})
    for number, (step, states) in enumerate(steps):
        if number == 2:
            indexed.add_indexers({"by-tier": label_index("tier"), "again": label_index("app")})
        for indexer in (plain, indexed):
            if step == "swap":
                pods = [pod(name, there, labels=labels) for there, name, labels in states if labels is not None]
                staged, _ = await indexer.stage(pods)
                indexer.swap(staged)
                continue
            for there, name, labels in states:
                if labels is None:
                    indexer.remove(f"{there}/{name}")
                else:
                    indexer.put(f"{there}/{name}", pod(name, there, labels=labels))
    expected, found = (
        Lister._create("Pod", each, lambda: True, Pod).list(
            label_selector=",".join(requirements), field_selector=fields, namespace=namespace
        )
        for each in (plain, indexed)
    )
    assert sorted(names(found)) == sorted(names(expected))


@pytest.mark.parametrize(
    ("selector", "namespace", "compared"),
    [
        ("app=web", None, 10),
        ("app in (web,db,none)", None, 20),
        ("app=web,tier=1", None, 10),
        ("app=web,tier=1,tier!=2", "ns-7", 4),  # the index of the namespace has fewer
        ("app=rare", "ns-7", 1),
        ("app=none", None, 0),
        ("app!=web", None, 31),
        ("app", None, 31),
    ],
)
def test_a_label_with_an_index_is_looked_up_without_a_scan(
    selector: str, namespace: str | None, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pods = [pod(app, f"ns-{n}", labels={"app": app, "tier": "1"}) for n in range(10) for app in ("web", "db", "api")]
    pods.append(pod("rare", "ns-7", labels={"app": "rare"}))
    matches, calls = LabelSelector.matches, 0

    def counted(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
        nonlocal calls
        calls += 1
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    lister_of(Pod, *pods, indexers={"app": label_index("app")}).list(label_selector=selector, namespace=namespace)
    assert calls == compared


@pytest.mark.parametrize(
    "selector", ["metadata.name=a", "metadata.namespace=ns-7,metadata.name=a", "metadata.namespace=ns-7"]
)
def test_a_name_or_namespace_is_looked_up_without_a_scan(selector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pods = lister_of(Pod, *(pod(name, f"ns-{number}") for number in range(10) for name in "abc"))
    compared: list[str] = []
    matches = FieldSelector.matches

    def counted(matcher: FieldSelector, getter: Callable[[str], str]) -> bool:
        compared.append(getter("metadata.name"))
        return matches(matcher, getter)

    monkeypatch.setattr(FieldSelector, "matches", counted)
    monkeypatch.delattr(Indexer, "snapshot")
    found = pods.list(field_selector=selector)
    assert len(compared) == len(found) == {"metadata.name=a": 10, "metadata.namespace=ns-7": 3}.get(selector, 1)


@pytest.mark.parametrize(
    ("kind", "selector", "message"),
    [
        (
            Pod,
            "spec.nope=1",
            "Pod cannot be selected by field 'spec.nope'; supported fields: metadata.name, metadata.namespace, ",
        ),
        (Pod, "metadata.name=a,spec.containers=x", "Pod cannot be selected by field 'spec.containers'"),
        (Pod, "metadata.labels=x", "Pod cannot be selected by field 'metadata.labels'"),
        (
            Deployment,
            "status.replicas=1",
            "Deployment cannot be selected by field 'status.replicas'; supported fields: metadata.name, metadata",
        ),
        (
            Node,
            "metadata.namespace=x",
            "Node cannot be selected by field 'metadata.namespace'; supported fields: metadata.name, spec",
        ),
        (Namespace, "metadata.namespace=x", "supported fields: metadata.name, status.phase"),
        (Secret, "data=x", "supported fields: metadata.name, metadata.namespace, type"),
    ],
)
def test_an_unsupported_field_raises_an_error_with_the_supported_fields(
    kind: type[KubernetesObject], selector: str, message: str
) -> None:
    """Whatever the cache holds: an empty cache raises the same error."""
    for objects in ((), (made(kind, "a"),)):
        with pytest.raises(SelectorError) as caught:
            lister_of(kind, *objects).list(field_selector=selector)
        assert message in str(caught.value)


@pytest.mark.parametrize("selector", ["metadata.name", "metadata.name=a=b", "=a", "metadata.name in (a)"])
def test_a_field_selector_that_does_not_parse_is_rejected(selector: str) -> None:
    with pytest.raises(SelectorError, match=r"^field selector .*, position"):
        lister_of(Pod).list(field_selector=selector)


WIDGET = ResourceInfo(group="example.com", version="v1", kind="Widget", plural="widgets", namespaced=True)


@attrs.frozen(kw_only=True, eq=False, repr=False, weakref_slot=False)
class Widget(KubernetesObject):
    __resource__ = WIDGET


@attrs.frozen(kw_only=True, eq=False, repr=False, weakref_slot=False)
class Planet(KubernetesObject):
    __resource__ = attrs.evolve(WIDGET, kind="Planet", plural="planets", namespaced=False)


@pytest.mark.parametrize(
    ("kind", "supported"),
    [
        (Widget, ("metadata.name", "metadata.namespace")),
        (Planet, ("metadata.name",)),
        (WIDGET, ("metadata.name", "metadata.namespace")),
        (ClusterRole, ("metadata.name", "metadata.namespace")),
        (Deployment, ("metadata.name", "metadata.namespace")),
        (ResourceSlice, ("metadata.name", "spec.driver", "spec.nodeName")),
        (Service, ("metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type")),
        # The other fields are not in the metadata.
        (metadata_kind(Pod), ("metadata.name", "metadata.namespace")),
    ],
)
def test_a_kind_has_the_fields_that_the_server_supports_for_it(
    kind: ResourceInfo | type[KubernetesObject], supported: tuple[str, ...]
) -> None:
    assert FieldSelector.selectable_fields(kind).names == supported


def test_every_selectable_field_of_a_built_in_kind_can_be_read_from_its_class() -> None:
    for info in builtin_resources():
        kind = builtin_kind(info.api_version, info.kind)
        fields = FieldSelector.selectable_fields(kind)
        assert fields.names == FieldSelector.selectable_fields(info).names
        obj = from_json(kind, b'{"metadata":{"name":"a"}}')
        assert {fields.read(obj, name) for name in fields.names if name != "metadata.name"} <= {"", "false", "0"}


async def test_lister_and_server_select_the_same_by_field(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, client: Client, nursery: trio.Nursery
) -> None:
    api_server.create(made(Namespace, "other"))
    for each in PODS:
        api_server.create(each)
    factory = SharedInformerFactory(client)
    informer = factory.informer(Pod)
    await nursery.start(factory.run)
    for name in FieldSelector.selectable_fields(Pod).names:
        for value in ("", "a", "default", "n1", "true", "false", "Running", "10.0.0.1"):
            for operator in ("=", "!="):
                selector = f"{name}{operator}{value}"
                listing = await client.api(Pod).list(field_selector=selector)
                assert set(names(informer.lister.list(field_selector=selector))) == set(names(listing.items)), selector


# --- read only ---


ATTRIBUTES = ["_indexer", "_name", "_has_synced", "_kind", "list", "get", "anything"]


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_no_attribute_of_a_lister_can_be_set_or_deleted(attribute: str) -> None:
    pods: Any = lister_of(Pod, *PODS)
    with pytest.raises(AttributeError):
        setattr(pods, attribute, None)
    with pytest.raises(AttributeError):
        delattr(pods, attribute)
    assert not hasattr(pods, "__dict__")
    assert len(pods) == 4


def test_the_results_of_a_lister_cannot_change_the_cache() -> None:
    pods = lister_of(Pod, *PODS, indexers={"node": field_index("spec.node_name")})
    reads = [
        lambda: pods.list(),
        lambda: pods.list(namespace="default"),
        lambda: pods.list(label_selector="app"),
        lambda: pods.list(field_selector="metadata.name=a"),
        lambda: pods.by_index("node", "n1"),
        lambda: pods.index_keys("node", "n1"),
        lambda: pods.index_values(NAMESPACE_INDEX),
    ]
    for read in reads:
        before = read()
        assert type(before) is tuple
        with pytest.raises(TypeError):
            before[0] = None  # type: ignore[index]  # a tuple does not allow it
        del before
        assert len(read()) > 0
    for obj in pods:  # an iteration has its own tuple
        assert obj is pods[key_of(obj)]
    assert len(pods) == 4


def test_get_returns_none_where_a_subscript_raises() -> None:
    pods = lister_of(Pod, *PODS)
    assert pods.get("a", namespace="default") is PODS[0]
    assert pods.get("default/a") is PODS[0]
    assert pods.get("x", namespace="default") is None
    with pytest.raises(NotFoundError) as caught:
        pods["default/x"]
    assert str(caught.value) == "Pod 'default/x' is not in the cache"
    assert isinstance(caught.value, NotInCacheError)
    assert (caught.value.code, caught.value.reason) == (404, "NotFound")


NEEDS_NAMESPACE = (
    "pods are namespaced, and 'x' has no namespace; write lister.get(name, namespace=...) or lister['namespace/name']"
)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda pods: pods.get("x"), NEEDS_NAMESPACE),
        (lambda pods: pods.get("x", namespace=""), NEEDS_NAMESPACE),
        (lambda pods: pods["x"], NEEDS_NAMESPACE),
        (lambda pods: "x" in pods, NEEDS_NAMESPACE),
        (
            lambda pods: pods.get("default/a", namespace="default"),
            "'default/a' is not a valid name, because it contains '/'",
        ),
    ],
)
def test_a_name_without_its_namespace_is_an_error_and_not_an_absent_object(
    read: Callable[[Any], object], message: str
) -> None:
    for pods in lister_of(Pod, *PODS), lister_of(Pod):
        with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
            read(pods)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda nodes: nodes.get("n1", namespace="default"), "nodes are not namespaced; omit the namespace 'default'"),
        (lambda nodes: nodes.get("default/n1"), "nodes are not namespaced, and 'default/n1' has a namespace; pass"),
        (lambda nodes: nodes["default/n1"], "nodes are not namespaced, and 'default/n1' has a namespace; pass only"),
        (lambda nodes: "default/n1" in nodes, "nodes are not namespaced, and 'default/n1' has a namespace; pass only"),
    ],
)
def test_a_namespace_for_a_cluster_scoped_kind_is_an_error(read: Callable[[Any], object], message: str) -> None:
    nodes = lister_of(Node, made(Node, "n1"))
    assert nodes.get("n1") is nodes["n1"]
    assert nodes.get("n2") is None
    with pytest.raises(ValueError, match=rf"^{re.escape(message)}"):
        read(nodes)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda pods: pods.get(made(Node, "n1")), "the lister of Pod does not accept <Node n1"),
        (lambda pods: pods.get(7), "expected a name, an ObjectRef, a controller's request or an object, not an int"),
        (lambda pods: pods.get(None), "expected a name, an ObjectRef, a controller's request or an object, not None"),
        (lambda pods: pods["default", "a"], "a key must be a string, 'namespace/name' or 'name', not tuple"),
        (lambda pods: pods[0], "a key must be a string, 'namespace/name' or 'name', not int"),
        (lambda pods: PODS[0] in pods, "a key must be a string, 'namespace/name' or 'name', not Pod; see key_of()"),
    ],
)
def test_a_lister_says_what_to_pass_instead_of_an_object_or_a_number(
    read: Callable[[Any], object], message: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{re.escape(message)}"):
        read(lister_of(Pod, *PODS))


def test_a_request_or_an_object_names_the_object_as_for_an_api() -> None:
    pods, nodes = lister_of(Pod, *PODS), lister_of(Node, made(Node, "n1"))
    found = pods.get(PODS[0].name, namespace=PODS[0].namespace)
    assert found is not None
    newer = found.evolve(metadata=found.metadata.evolve(uid="another", resource_version="99"))
    for name in (Request.of(found), found, newer):
        assert pods.get(name) is found
        assert pods.get(name, namespace=found.namespace) is found
    assert pods.get(Request("default", "no-such-pod")) is None
    assert nodes.get(Request(None, "n1")) is nodes["n1"]
    assert nodes.get(nodes["n1"]) is nodes["n1"]


def test_a_request_without_a_namespace_takes_that_of_the_argument_or_is_refused() -> None:
    pods = lister_of(Pod, *PODS)
    first = PODS[0]
    assert pods.get(Request(None, first.name), namespace=first.namespace) == first
    with pytest.raises(ValueError, match="are namespaced, and 'no-such-pod' has no namespace"):
        pods.get(Request(None, "no-such-pod"))
    with pytest.raises(ValueError, match="is not in namespace 'other'"):
        pods.get(Request("default", "a"), namespace="other")


def test_a_field_is_decoded_once_and_a_decoding_error_is_raised_every_time() -> None:
    """client-go: TestLazyOnlyOnce, TestLazyError

    As ``synctrack.Lazy``: decoded on demand, kept until the object is replaced; an error is never kept.
    """
    metadata = b'"metadata":{"name":"a","namespace":"default"}'
    indexer: Indexer[Pod] = Indexer()
    pods: Lister[Pod] = Lister._create("Pod", indexer, lambda: True, Pod)
    indexer.put("default/a", make_object(Pod, b"{" + metadata + b',"spec":{"nodeName":"n1"}}'))
    assert pods["default/a"].spec is pods["default/a"].spec
    before = pods["default/a"].spec
    indexer.put("default/a", make_object(Pod, b"{" + metadata + b',"spec":{"nodeName":7}}'))
    assert pods["default/a"].spec is not before
    for _ in range(2):
        with pytest.raises(DecodeError, match=r"PodSpec\.node_name"):
            pods["default/a"].spec.node_name  # noqa: B018  # reading the attribute fails

"""Manifests are applied, pruned, waited for and deleted alike on the embedded server and on kube-apiserver."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
import trio

from tests.e2e.workloads import make_namespace
from trioformer import Client
from trioformer.errors import (
    ApplyConflictError,
    ConflictError,
    ManifestError,
    ManifestsFailedError,
    NotFoundError,
    RolloutFailedError,
    TrioformerError,
)
from trioformer.manifests import (
    ApplySet,
    Manifest,
    Readiness,
    apply_manifests,
    delete_manifests,
    load_manifests,
    wait_for_manifests,
)
from trioformer.manifests._manifest import ManifestResult
from trioformer.models import ObjectMeta, from_dict
from trioformer.models.apps_v1 import Deployment
from trioformer.models.batch_v1 import Job
from trioformer.models.core_v1 import ConfigMap, Namespace, Secret, Service

MANAGER = "contract"


def config_map(name: str, namespace: str, *, key: str = "value") -> str:
    metadata = f"{{name: {name}, namespace: {namespace}, labels: {{app: web}}}}"
    return f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata:\n  key: {key}\n"


def definition(group: str, *, labels: str = "{}") -> str:
    return f"""\
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}, labels: {labels}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{size: {{type: integer}}}}}}
"""


def widget(group: str, namespace: str, *, spec: str = "{size: 3}") -> str:
    return f"---\napiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: w, namespace: {namespace}}}\nspec: {spec}\n"


def actions(results: Iterable[ManifestResult]) -> list[str]:
    return [f"{result.manifest.object.kind} {result.manifest.object.name} {result.action}" for result in results]


async def failure(client: Client, text: str, **options: object) -> TrioformerError:
    with pytest.raises(ManifestsFailedError) as caught:
        await apply_manifests(client, load_manifests(text=text), field_manager=MANAGER, **options)  # type: ignore[arg-type]
    (found,) = caught.value.failures
    return found.error


async def test_objects_are_created_then_unchanged_then_configured(server_client: Client, namespace: str) -> None:
    reported: list[ManifestResult] = []
    for key, action in (("one", "created"), ("one", "unchanged"), ("two", "configured")):
        results = await apply_manifests(
            server_client,
            load_manifests(text=config_map("c", namespace, key=key)),
            field_manager=MANAGER,
            on_progress=reported.append,
        )
        assert actions(results) == [f"ConfigMap c {action}"]
        assert tuple(reported[-1:]) == results
        assert str(results[0]) == f"ConfigMap c in namespace {namespace} {action}"
    stored = await server_client.api(ConfigMap, namespace).get("c")
    assert stored.data == {"key": "two"}


async def test_namespaces_and_definitions_come_first_and_kinds_are_waited_for(server_client: Client) -> None:
    name = await make_namespace(server_client, "ordered")
    group, inside = f"{name}.example.com", f"{name}-inside"
    text = "".join(
        [
            widget(group, inside),
            config_map("c", inside),
            definition(group),
            f"---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: {inside}}}\n",
        ]
    )
    manifests = load_manifests(text=text)
    results = await apply_manifests(server_client, manifests, field_manager=MANAGER)
    assert actions(results) == [
        f"Namespace {inside} created",
        f"CustomResourceDefinition widgets.{group} created",
        "ConfigMap c created",
        "Widget w created",
    ]
    ready = await wait_for_manifests(server_client, manifests)
    assert {result.action for result in ready} == {"ready"}
    # Objects in reverse order: of kinds before their definitions.
    deleted = await delete_manifests(server_client, [m for m in manifests if not isinstance(m.object, Namespace)])
    assert actions(deleted) == [
        "Widget w deleted",
        "ConfigMap c deleted",
        f"CustomResourceDefinition widgets.{group} deleted",
    ]


async def test_a_kind_that_the_server_does_not_serve_is_one_failure(server_client: Client, namespace: str) -> None:
    text = f"{widget('nobody.example.com', namespace)}{config_map('c', namespace)}"
    reported: list[ManifestResult] = []
    with pytest.raises(ManifestsFailedError) as caught:
        await apply_manifests(
            server_client, load_manifests(text=text), field_manager=MANAGER, on_progress=reported.append
        )
    assert actions(reported) == ["ConfigMap c created"]
    (found,) = caught.value.failures
    assert isinstance(found.error, NotFoundError)
    assert found.manifest == f"Widget w in namespace {namespace} (line 2)"
    assert str(caught.value).startswith(f"1 of 2 manifests were not applied: {found.manifest}: ")
    assert actions(await delete_manifests(server_client, load_manifests(text=text))) == [
        "Widget w absent",
        "ConfigMap c deleted",
    ]


async def test_a_kind_that_is_served_already_is_found(server_client: Client, namespace: str) -> None:
    group = f"{namespace}.example.com"
    await apply_manifests(server_client, load_manifests(text=definition(group)), field_manager=MANAGER)
    (result,) = await apply_manifests(
        server_client, load_manifests(text=widget(group, namespace)), field_manager=MANAGER
    )
    assert result.action == "created"
    error = await failure(server_client, widget(group, namespace, spec="{size: 3, unknown: 4}"))
    assert ".spec.unknown: field not declared in schema" in str(error)


async def test_a_conflict_names_manager_field_and_line_until_forced(server_client: Client, namespace: str) -> None:
    await apply_manifests(server_client, load_manifests(text=config_map("c", namespace)), field_manager="another")
    text = config_map("c", namespace, key="two")
    error = await failure(server_client, text)
    assert isinstance(error, ApplyConflictError)
    assert [(conflict.manager, conflict.field) for conflict in error.conflicts] == [("another", ".data.key")]
    (result,) = await apply_manifests(server_client, load_manifests(text=text), field_manager=MANAGER, force=True)
    assert result.action == "configured"


async def test_a_dry_run_stores_nothing(server_client: Client, namespace: str) -> None:
    manifests = load_manifests(text=config_map("c", namespace))
    results = await apply_manifests(server_client, manifests, field_manager=MANAGER, dry_run=True)
    assert actions(results) == ["ConfigMap c created"]
    api = server_client.api(ConfigMap, namespace)
    with pytest.raises(NotFoundError):
        await api.get("c")
    await apply_manifests(server_client, manifests, field_manager=MANAGER)
    changed = load_manifests(text=config_map("c", namespace, key="two"))
    results = await apply_manifests(server_client, changed, field_manager=MANAGER, dry_run=True)
    assert actions(results) == ["ConfigMap c configured"]
    results = await apply_manifests(server_client, manifests, field_manager=MANAGER, dry_run=True)
    assert actions(results) == ["ConfigMap c unchanged"]


async def test_a_set_that_is_not_valid_is_refused_before_anything_is_applied(
    server_client: Client, namespace: str
) -> None:
    text = config_map("c", namespace) * 2 + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {generateName: d-}}\n"
    with pytest.raises(ManifestError) as caught:
        await apply_manifests(server_client, load_manifests(text=text), field_manager=MANAGER)
    twice = f"ConfigMap c in namespace {namespace} is already among the manifests at line 2"
    assert [str(problem) for problem in caught.value.problems] == [
        f"line 8, column 1: {twice}; remove one of them",
        "line 14, column 1: the ConfigMap has only a generateName; give it a name, or create it with Api.create()",
    ]
    with pytest.raises(ValueError, match="field manager; pass field_manager="):
        await apply_manifests(server_client, load_manifests(text=config_map("c", namespace)))
    with pytest.raises(TypeError, match=r"must be a Manifest from load_manifests"):
        await apply_manifests(server_client, ["deploy.yaml"], field_manager=MANAGER)  # type: ignore[list-item]
    with pytest.raises(NotFoundError):
        await server_client.api(ConfigMap, namespace).get("c")


# ------------------------------------------------------------------------------------------------------------ pruning


async def test_an_apply_set_prunes_what_has_left_it_and_nothing_else(server_client: Client, namespace: str) -> None:
    other = await make_namespace(server_client, "other")
    group = f"{namespace}.example.com"
    prune = ApplySet("set", namespace)

    async def apply(text: str, apply_set: ApplySet = prune) -> list[str]:
        manifests = load_manifests(text=text)
        return actions(await apply_manifests(server_client, manifests, field_manager=MANAGER, prune=apply_set))

    await apply_manifests(
        server_client,
        load_manifests(text=config_map("not-ours", namespace) + config_map("not-ours", other)),
        field_manager=MANAGER,
    )
    first = config_map("a", namespace) + config_map("b", other) + definition(group) + widget(group, namespace)
    assert len(await apply(first)) == 4
    parent = await server_client.api(Secret, namespace).get("set")
    assert parent.metadata.labels == {"applyset.kubernetes.io/id": prune.id(namespace)}
    annotations = parent.metadata.annotations
    assert annotations["applyset.kubernetes.io/tooling"].startswith("trioformer/v")
    assert annotations["applyset.kubernetes.io/additional-namespaces"] == other
    assert annotations["applyset.kubernetes.io/contains-group-kinds"] == (
        f"ConfigMap,CustomResourceDefinition.apiextensions.k8s.io,Widget.{group}"
    )
    # Also what was its last object of a kind, and in a namespace.
    service = f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: s, namespace: {namespace}}}\n"
    service += "spec: {ports: [{port: 80}]}\n"
    left = f"{service}{definition(group)}"
    results = await apply(left)
    assert results[:2] == [f"CustomResourceDefinition widgets.{group} unchanged", "Service s created"]
    assert sorted(results[2:]) == ["ConfigMap a pruned", "ConfigMap b pruned", "Widget w pruned"]
    for place in (namespace, other):
        names = {each.name for each in await server_client.api(ConfigMap, place).list(label_selector="app=web")}
        assert names == {"not-ours"}
    parent = await server_client.api(Secret, namespace).get("set")
    assert parent.metadata.annotations["applyset.kubernetes.io/additional-namespaces"] == ""
    assert parent.metadata.annotations["applyset.kubernetes.io/contains-group-kinds"] == (
        "CustomResourceDefinition.apiextensions.k8s.io,Service"
    )
    # Members of one set are not taken by another.
    error = await failure(server_client, service, prune=ApplySet("another", namespace))
    assert isinstance(error, ConflictError)
    assert f"member of another ApplySet, {prune.id(namespace)}" in str(error)


@pytest.mark.parametrize("tooling", ["kubectl/v1.36.3", None])
async def test_a_parent_of_another_tool_or_set_is_refused(
    server_client: Client, namespace: str, tooling: str | None
) -> None:
    prune = ApplySet("set", namespace, kind="ConfigMap")
    metadata = ObjectMeta(name="set")
    if tooling is not None:
        labels = {"applyset.kubernetes.io/id": prune.id(namespace)}
        metadata = ObjectMeta(name="set", labels=labels, annotations={"applyset.kubernetes.io/tooling": tooling})
    await server_client.api(ConfigMap, namespace).create(ConfigMap(metadata=metadata))
    error = await failure(server_client, config_map("c", namespace), prune=prune)
    expected = "it exists and has no label" if tooling is None else f"belongs to another tool, {tooling}"
    assert expected in str(error)
    with pytest.raises(NotFoundError):
        await server_client.api(ConfigMap, namespace).get("c")


async def test_a_dry_run_prunes_nothing_and_says_what_it_would(server_client: Client, namespace: str) -> None:
    prune = ApplySet("set", namespace)
    both = load_manifests(text=config_map("a", namespace) + config_map("b", namespace))
    await apply_manifests(server_client, both, field_manager=MANAGER, prune=prune)
    results = await apply_manifests(server_client, both[:1], field_manager=MANAGER, prune=prune, dry_run=True)
    assert actions(results) == ["ConfigMap a unchanged", "ConfigMap b pruned"]
    assert (await server_client.api(ConfigMap, namespace).get("b")).name == "b"


# ------------------------------------------------------------------------------------------------- waiting and deleting


async def test_a_rollout_is_waited_for_with_what_is_missing(server_client: Client, namespace: str) -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    web = from_dict(Deployment, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    (result,) = await apply_manifests(server_client, [web], field_manager=MANAGER)
    assert result.object is not None
    generation = result.object.metadata.generation
    api, seen = server_client.api(Deployment, namespace), []

    async def advance(**status: int) -> None:
        body = {"status": {"observedGeneration": generation, **status}}
        await api.patch("web", body, subresource="status")

    async with trio.open_nursery() as nursery:
        changes, receive = trio.open_memory_channel[str](10)

        def progress(_: Manifest, readiness: Readiness) -> None:
            seen.append(readiness.message)
            changes.send_nowait(readiness.message)

        async def control() -> None:
            for replicas, updated, available in ((3, 1, 1), (3, 2, 1), (2, 2, 1), (2, 2, 2)):
                await receive.receive()
                await advance(
                    replicas=replicas, updatedReplicas=updated, readyReplicas=available, availableReplicas=available
                )

        nursery.start_soon(control)
        await wait_for_manifests(server_client, [web], on_progress=progress)
    assert seen[0] in (
        "its controller has not observed the newest generation yet",
        "0 of 2 replicas are updated",
    )
    assert seen[1:] == [
        "1 of 2 replicas are updated",
        "1 old replica will be terminated",
        "1 of 2 updated replicas are available",
        "its rollout is complete",
    ]


async def test_a_failed_job_ends_the_wait_for_all(server_client: Client, namespace: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = from_dict(Job, {"metadata": {"name": "once", "namespace": namespace}, "spec": {"template": template}})
    other = from_dict(Job, {"metadata": {"name": "other", "namespace": namespace}, "spec": {"template": template}})
    await apply_manifests(server_client, [job, other], field_manager=MANAGER)
    failed = {
        "startTime": "2026-11-22T19:00:00Z",
        "conditions": [
            {"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "too many retries"}
            for kind in ("FailureTarget", "Failed")
        ],
    }
    await server_client.api(Job, namespace).patch("once", {"status": failed}, subresource="status")
    with pytest.raises(ManifestsFailedError) as caught:
        await wait_for_manifests(server_client, [other, job])
    (found,) = caught.value.failures
    assert isinstance(found.error, RolloutFailedError)
    assert str(found) == (f"Job once in namespace {namespace}: it has failed: BackoffLimitExceeded: too many retries")


async def test_a_deletion_waits_for_finalizers(server_client: Client, namespace: str) -> None:
    text = config_map("c", namespace).replace("labels:", "finalizers: [example.com/keep], labels:")
    manifests = load_manifests(text=text)
    await apply_manifests(server_client, manifests, field_manager=MANAGER)
    (result,) = await delete_manifests(server_client, manifests)
    assert result.action == "deleted"
    assert result.object is not None
    assert result.object.metadata.deletion_timestamp is not None
    api = server_client.api(ConfigMap, namespace)

    async def finish() -> None:
        await api.patch("c", {"metadata": {"finalizers": None}})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(finish)
        (result,) = await delete_manifests(server_client, manifests, wait=True)
    assert (result.action, result.object) in (("deleted", None), ("absent", None))
    with pytest.raises(NotFoundError):
        await api.get("c")


async def test_files_are_named_by_path_and_line(server_client: Client, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(config_map("ok", namespace) + config_map("NOT", namespace))
    with pytest.raises(ManifestsFailedError) as caught:
        await apply_manifests(server_client, load_manifests(tmp_path), field_manager=MANAGER)
    assert f"ConfigMap NOT in namespace {namespace} ({tmp_path}/web.yaml:8): apply configmaps/NOT" in str(caught.value)
    assert await server_client.api(Service, namespace).exists("ok") is False

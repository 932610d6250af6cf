"""The types of manifests, checked by mypy and pyright; never executed."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from trioformer import Client, KubernetesObject
from trioformer.errors import ManifestError, ManifestsFailedError
from trioformer.errors._manifests import ManifestFailure, ManifestProblem
from trioformer.manifests import (
    ApplySet,
    Manifest,
    Readiness,
    apply_manifests,
    delete_manifests,
    dump_manifests,
    load_manifests,
    readiness_of,
    wait_for_manifests,
)
from trioformer.manifests._manifest import ManifestAction, ManifestProgress, ManifestResult
from trioformer.manifests._readiness import ReadyState
from trioformer.manifests._wait import WaitProgress
from trioformer.models.core_v1 import ConfigMap, Pod


def load() -> None:
    manifests = load_manifests(Path("deploy"), "more.yaml", kinds=[ConfigMap], recursive=True)
    assert_type(manifests, tuple[Manifest, ...])
    assert_type(load_manifests(text=b"kind: Pod")[0].object, KubernetesObject)
    assert_type(dump_manifests([*manifests, ConfigMap()]), str)


async def apply(client: Client, progress: ManifestProgress, wait_progress: WaitProgress) -> None:
    results = await apply_manifests(client, [ConfigMap(), *load_manifests("a.yaml")], on_progress=progress)
    assert_type(results, tuple[ManifestResult, ...])
    assert_type(results[0].action, ManifestAction)
    assert_type(results[0].object, KubernetesObject | None)
    await apply_manifests(client, [], field_manager="me", prune=ApplySet("web", kind="ConfigMap"))
    await wait_for_manifests(client, load_manifests("a.yaml"), on_progress=wait_progress)
    assert_type(await delete_manifests(client, [], wait=True), tuple[ManifestResult, ...])


def ready(pod: Pod) -> None:
    assert_type(readiness_of(pod), Readiness)
    assert_type(readiness_of(pod).state, ReadyState)


def errors() -> None:
    try:
        load()
    except ManifestError as exc:
        assert_type(exc.problems, tuple[ManifestProblem, ...])
    except ManifestsFailedError as exc:
        assert_type(exc.failures, tuple[ManifestFailure, ...])

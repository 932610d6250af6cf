"""What a deletion of manifests does when some of them cannot be deleted, or are gone."""

from __future__ import annotations

from typing import Any

import pytest
from trio.testing import MockClock

from trioformer.client import Client
from trioformer.errors import ConnectionFailedError, ManifestsFailedError
from trioformer.manifests import apply_manifests, delete_manifests, load_manifests, wait_for_manifests
from trioformer.manifests._manifest import ManifestResult
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import APIServer

NAMES = ("a", "b", "c")
TEXT = "---\n".join(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n" for name in NAMES)


def create(api_server: APIServer, *names: str) -> None:
    for name in names:
        api_server.create(ConfigMap(metadata=ObjectMeta(name=name, namespace="default")))


async def test_what_cannot_be_deleted_does_not_keep_the_others(api_server: APIServer, client: Client) -> None:
    create(api_server, "a", "c")
    api_server.fail_next(1, verb="delete", resource="configmaps", status=403)
    done: list[ManifestResult] = []
    with pytest.raises(ManifestsFailedError, match="not deleted: 1") as caught:
        await delete_manifests(client, load_manifests(text=TEXT), namespace="default", on_progress=done.append)
    assert len(caught.value.failures) == 1
    assert sorted(each.action for each in done) == ["absent", "deleted"]


async def test_a_lost_connection_ends_a_deletion(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create(api_server, *NAMES)
    with api_server.unreachable(), pytest.raises(ConnectionFailedError):
        await delete_manifests(client, load_manifests(text=TEXT), namespace="default")


async def test_a_kind_that_is_not_served_is_absent(api_server: APIServer, client: Client) -> None:
    text = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
    (result,) = await delete_manifests(client, load_manifests(text=text), namespace="default")
    assert result.action == "absent"


async def test_a_deletion_waits_for_what_finalizers_keep(
    autojump_clock: MockClock, api_server: APIServer, client: Client
) -> None:
    create(api_server, "a", "b", "c")
    results = await delete_manifests(client, load_manifests(text=TEXT), namespace="default", wait=True)
    assert [each.action for each in results] == ["deleted"] * 3


async def test_progress_that_nobody_would_wait_for_is_refused(api_server: APIServer, client: Client) -> None:
    async def show(*args: object) -> None:
        raise AssertionError

    manifests = load_manifests(text=TEXT)
    for call in (apply_manifests, delete_manifests, wait_for_manifests):
        function: Any = call
        with pytest.raises(TypeError, match="on_progress must not be async, because it is not awaited; write def "):
            await function(client, manifests, namespace="default", on_progress=show)
    with pytest.raises(
        TypeError, match=r"^on_progress cannot be called .*; write def on_progress\(manifest, readiness\)"
    ):
        await function(client, manifests, namespace="default", on_progress=lambda one: None)
    assert list(api_server.requests) == []

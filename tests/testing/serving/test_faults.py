"""Scripted faults: requests that are denied, slow, or hang."""

from __future__ import annotations

import math

import pytest
import trio
import trio.testing

from trioformer.client import Client
from trioformer.errors import ForbiddenError
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import Container, Pod, PodSpec
from trioformer.testing import APIServer


async def test_a_request_is_denied_with_a_status_of_the_tests_own(api_server: APIServer, k8s_client: Client) -> None:
    body = {"message": 'admission webhook "images.example.com" denied the request', "details": {"kind": "pods"}}
    api_server.fail_next(verb="create", resource="pods", status=403, body=body)
    spec = PodSpec(containers=[Container(name="main", image="web:1")])
    pod = Pod(metadata=ObjectMeta(name="a", namespace="default"), spec=spec)
    with pytest.raises(ForbiddenError, match=r"images\.example\.com") as caught:
        await k8s_client.create(pod)
    assert caught.value.details is not None
    assert caught.value.details.kind == "pods"
    await k8s_client.create(pod)


async def test_a_request_is_served_late(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(Pod(metadata=ObjectMeta(name="a")))
    api_server.fail_next(verb="list", status=None, after=20)
    assert [pod.name for pod in await k8s_client.api(Pod).list()] == ["a"]
    assert trio.current_time() == 20
    await k8s_client.api(Pod).list()
    assert trio.current_time() == 20


async def test_a_request_hangs_until_its_client_gives_up(
    autojump_clock: trio.testing.MockClock, api_server: APIServer, k8s_client: Client
) -> None:
    api_server.create(Pod(metadata=ObjectMeta(name="a")))
    api_server.fail_next(verb="get", after=math.inf)
    pods = k8s_client.api(Pod, namespace="default")
    with trio.move_on_after(30) as scope:
        await pods.get("a")
    assert scope.cancelled_caught
    assert (await pods.get("a")).name == "a"
    assert api_server.statistics().pending_faults == 0


async def test_only_the_status_is_patched(api_server: APIServer) -> None:
    api_server.create(Pod(metadata=ObjectMeta(name="a")))
    patch = {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}}
    patched = api_server.patch(Pod, "a", patch, subresource="status")
    assert (patched.status.phase, patched.spec.node_name) == ("Running", None)
    assert api_server.patch(Pod, "a", patch).spec.node_name == "n"

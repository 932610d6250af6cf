"""The largest pod that a tenant can create, in informers beside client-go's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trio

from tests.e2e.recovery.subjects import POLL_PERIOD, THEIRS, programs_of, run_subject
from trioformer import load_config, open_client
from trioformer.cache import Added, ApiListWatch, ReflectorOptions, SharedInformer
from trioformer.client import ClientOptions
from trioformer.errors import LimitExceededError
from trioformer.models import ObjectMeta, key_of
from trioformer.models.core_v1 import Container, Namespace, Pod, PodSpec
from trioformer.testing import ControlPlane
from trioformer.transport import Limits

NAMESPACE = "large"
ESCAPED = "<" * 1_450_000
"""What etcd stores in a byte each is six bytes of JSON, 8.7 MB: kube-apiserver writes ``\\u003c``."""


def large_pod(name: str) -> Pod:
    container = Container(name="main", image="busybox", args=(ESCAPED,))
    return Pod(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=PodSpec(containers=(container,)))


async def test_the_largest_pod_is_in_the_cache_by_list_and_by_watch_as_in_client_go(
    control_plane: ControlPlane, assets: Path, tmp_path: Path
) -> None:
    command = [*programs_of(assets, THEIRS)[THEIRS], "-pods"]
    with trio.fail_after(60):
        async with (
            open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client,
            trio.open_nursery() as nursery,
        ):
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
            pods = client.api(Pod, NAMESPACE)
            await pods.create(large_pod("listed"))
            informer = SharedInformer(ApiListWatch(pods))
            async with run_subject(
                THEIRS, command, control_plane.url, control_plane.kubeconfig, NAMESPACE, 1, tmp_path / "log"
            ) as theirs:
                with informer.subscribe() as notifications:
                    await nursery.start(informer.run)
                    listed = await anext(notifications)
                    created = await pods.create(large_pod("watched"))
                    watched = await anext(notifications)
                expected = {key_of(each): each.metadata.resource_version for each in (listed.object, created)}
                found: Mapping[str, str] = {}
                while len(found) < len(expected):
                    await trio.sleep(POLL_PERIOD)
                    (state,) = await theirs.states()
                    found = state.cache
            nursery.cancel_scope.cancel()
    assert isinstance(listed, Added)
    assert isinstance(watched, Added)
    assert (listed.is_initial, watched.is_initial) == (True, False)
    assert {key_of(each): each.metadata.resource_version for each in informer.lister.list()} == found == expected
    assert {each.spec.containers[0].args for each in informer.lister.list()} == {(ESCAPED,)}


async def test_an_event_above_the_limit_ends_the_watch_and_the_list_has_the_object(control_plane: ControlPlane) -> None:
    """kube-apiserver takes 3 MB at most, so the limit is lower than by default."""
    namespace = "too-large"
    config = load_config(kubeconfig=control_plane.kubeconfig)
    errors: list[Exception] = []
    options = ReflectorOptions(watch_error_handler=errors.append)
    with trio.fail_after(60):
        async with (
            open_client(config) as client,
            open_client(config, options=ClientOptions(limits=Limits(object_bytes=1_000_000))) as limited,
            trio.open_nursery() as nursery,
        ):
            await client.api(Namespace).create(Namespace(metadata=ObjectMeta(name=namespace)))
            informer = SharedInformer(ApiListWatch(limited.api(Pod, namespace)), options=options)
            with informer.subscribe() as notifications:
                await nursery.start(informer.run)
                await informer.wait_until_synced()
                pod = large_pod("large")
                created = await client.api(Pod, namespace).create(
                    pod.evolve(metadata=pod.metadata.evolve(namespace=namespace))
                )
                found = await anext(notifications)
            nursery.cancel_scope.cancel()
    assert isinstance(found, Added)
    assert found.object.uid == created.uid
    assert [type(error) for error in errors] == [LimitExceededError]

"""Type assertions about controllers; mypy and pyright check them, and nothing runs them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_type

import trio

from trioformer import Api, Lister, Notification, SharedInformer, SharedInformerFactory, Updated
from trioformer.client import ObjectRef
from trioformer.controller import (
    Controller,
    ControllerOptions,
    Expectations,
    Request,
    RequeueAfter,
    RetryAfter,
    create_or_update,
    drop_finalizer,
    ensure_finalizer,
    ensure_paused_condition,
    generation_changed,
    labels_changed,
    labels_match,
    request_for_owner,
    requests_by_index,
    set_controller_reference,
    states_match,
)
from trioformer.controller._create_or_update import Written
from trioformer.controller._expectations import Expected
from trioformer.controller._results import NextStep
from trioformer.controller._statistics import ControllerStatistics
from trioformer.models.apps_v1 import Deployment, ReplicaSet
from trioformer.models.core_v1 import ConfigMap, Pod
from trioformer.workqueue import ItemExponentialFailureRateLimiter


async def reconcile(request: Request) -> RequeueAfter | None:
    assert_type(request.namespace, str | None)
    return RequeueAfter(5) if request.name else None


async def reconcile_only(request: Request) -> None: ...


async def report(request: Request, error: Exception, then: NextStep) -> None: ...
async def report_text(request: Request, error: Exception, then: str) -> None: ...


def nodes(pod: Pod) -> Iterable[Request]:
    yield Request(None, pod.spec.node_name or "")


def is_move(event: Notification[Pod]) -> bool:
    return isinstance(event, Updated) and event.old.spec.node_name != event.new.spec.node_name


async def reconcile_in_cluster(request: tuple[str, Request]) -> None:
    cluster, request_in_cluster = request
    assert_type(cluster, str)
    assert_type(request_in_cluster.name, str)


async def controllers(
    pods: SharedInformer[Pod],
    config_maps: SharedInformer[ConfigMap],
    deployments: SharedInformer[Deployment],
    nursery: trio.Nursery,
) -> None:
    controller = Controller(
        "pods", reconcile, workers=4, max_retries=5, on_error=report, limiter=ItemExponentialFailureRateLimiter()
    )
    Controller("text", reconcile, on_error=report_text)
    assert_type(controller.options, ControllerOptions)
    assert_type(controller.options.max_retries, int | None)
    controller.options.workers = 2  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # frozen
    Controller("only", reconcile_only)
    Controller("paced", reconcile, paused_by="example.com/paused", on_paused=reconcile_only, min_interval=5)
    Controller("bad", reconcile, worker=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # misspelt
    controller.watch(pods, priority=5)
    controller.watch(pods, enqueue=nodes, predicates=[is_move, generation_changed])
    controller.watch(pods, enqueue=request_for_owner(ReplicaSet), predicates=[labels_match("app=web")])
    controller.watch(
        pods,
        enqueue=request_for_owner(ReplicaSet, only_controller=False),
        predicates=[lambda event: not is_move(event)],
    )
    controller.watch(pods, predicates=[labels_changed, is_move])
    controller.watch(pods, predicates=[states_match(lambda pod: pod.spec.node_name == "n1")])
    controller.watch(config_maps, enqueue=requests_by_index(deployments, "config-maps"))
    controller.watch(pods, enqueue=lambda pod: [Request.of(pod)])
    controller.watch(config_maps, enqueue=nodes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # of pods
    controller.watch(config_maps, predicates=[is_move])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]  # of pods
    clusters = Controller("clusters", reconcile_in_cluster)
    assert_type(clusters, Controller[tuple[str, Request]])
    clusters.watch(pods, enqueue=lambda pod: [("east", Request.of(pod))])
    clusters.watch(pods, enqueue=nodes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # other requests
    clusters.add(Request(None, "a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(controller, Controller[Request])
    assert_type(Expectations().get(Request(None, "a")), Expected | None)
    assert_type(Expectations[tuple[str, Request]]().is_satisfied(("east", Request(None, "a"))), bool)
    Expectations().forget(("east", "a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # other requests
    Controller("bad", nodes)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # not async
    await nursery.start(controller.run)
    assert_type(controller.add(Request.parse("a/b"), priority=1), bool)
    assert_type(controller.statistics(), ControllerStatistics)
    await controller.stop()


async def owned(factory: SharedInformerFactory, api: Api[ConfigMap], pod: Pod, wanted: ConfigMap) -> None:
    controller = Controller("pods", reconcile)
    config_maps = controller.owns(factory, ConfigMap, owner=Pod)
    assert_type(config_maps, SharedInformer[ConfigMap])
    lister: Lister[ConfigMap] = config_maps.lister
    assert_type(lister.get(Request("default", "a")), ConfigMap | None)
    assert_type(lister.get(wanted), ConfigMap | None)
    assert_type(lister.get(ObjectRef.of(pod)), ConfigMap | None)
    assert_type(Request.of(pod), Request)
    assert_type(Request.parse("default/a"), Request)
    assert_type(await api.get(wanted), ConfigMap)
    assert_type(await api.get(Request.of(pod)), ConfigMap)
    lister.get(pod)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # the object of another kind
    await api.get(pod)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    await api.get_or_none(pod)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await api.delete(pod)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(set_controller_reference(wanted, pod), ConfigMap)
    written = await create_or_update(api, wanted, owner=pod, lister=lister)
    assert_type(written, Written[ConfigMap])
    assert_type(written.object, ConfigMap)
    assert_type(await ensure_finalizer(api, wanted, "example.com/a"), ConfigMap)
    assert_type(await ensure_paused_condition(api, wanted, "example.com/paused"), ConfigMap)
    assert_type(await drop_finalizer(api, wanted, "example.com/a"), ConfigMap | None)
    raise RetryAfter(30, "the certificate is not issued")

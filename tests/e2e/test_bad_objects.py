"""One bad object of each of a hundred tenants, among ten thousand good ones, against a real kube-apiserver.

The CustomResourceDefinition has no schema, as many have, so the server takes whatever is JSON.
An object is bad where the program first reads what it cannot: in the scan of its metadata, the transform, an index
function, a predicate, an enqueue function or a handler.
"""

from __future__ import annotations

import itertools
import random
import ssl
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import ClassVar

import attrs
import httpx
import pytest
import trio
import trio.testing

from tests.e2e.parallel import in_parallel
from tests.e2e.recovery.figures import report
from trioformer import Client, SharedInformerFactory, StatusError, load_config, open_client
from trioformer.cache import Lister, Notification, ResourceEventHandler, Updated
from trioformer.cache._bad_objects import QuarantineReason
from trioformer.client import Api
from trioformer.controller import Controller, Request
from trioformer.errors import QuarantinedError
from trioformer.models import JSON, KubernetesObject, Model, ObjectMeta, ResourceInfo, from_dict, key_of
from trioformer.models.apiextensions_v1 import CustomResourceDefinition
from trioformer.models.core_v1 import Namespace
from trioformer.testing import ControlPlane
from trioformer.watchtools import has_condition, wait_for

TENANTS = 100
GOOD = 100
"""Good objects of each tenant."""
LEVELS = 5_000
IN_TIME = 1.0
"""Seconds in which a change of a good object is handled."""
AT_ONCE = 8
"""Writes at the same time; a pause of the machine delays all of them."""
numbers = itertools.count()


# --- the kind ---


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Address(Model):
    """Where an order goes; some programs write every member, null if there is nothing."""

    metadata: ObjectMeta = attrs.field(factory=ObjectMeta)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OrderSpec(Model):
    """What is read of an order; each function of the program reads one field."""

    count: int = 0
    """Read by the transform."""
    customer: str = ""
    """Read by an index function."""
    size: str = "small"
    """Looked up by another index function."""
    address: Address = Address()
    """Its uid is in that index, too."""
    since: datetime | None = None
    """Read by the predicate."""
    payer: str = ""
    """Read by the enqueue function."""
    color: str = ""
    """Read by a handler."""
    serial: int = 0
    """Which change this is."""
    details: JSON = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Order(KubernetesObject):
    """A custom resource without a schema."""

    __resource__: ClassVar[ResourceInfo] = ResourceInfo(
        group="shop.example.com", version="v1", kind="Order", plural="orders", namespaced=True
    )

    spec: OrderSpec = OrderSpec()


SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
VERSION = {"name": "v1", "served": True, "storage": True, "schema": SCHEMA}
NAMES = {"kind": "Order", "listKind": "OrderList", "plural": "orders", "singular": "order"}
KIND = {"group": "shop.example.com", "scope": "Namespaced", "names": NAMES, "versions": [VERSION]}
DEFINITION = from_dict(CustomResourceDefinition, {"metadata": {"name": "orders.shop.example.com"}, "spec": KIND})

# Null is in no field of the server's own, which leaves out such members; in free-form JSON it reads as absent.
GOOD_SPEC = (
    '{"count":1,"customer":"c-1","size":"small","since":"2020-01-01T00:00:00Z","payer":"","color":null,'
    '"address":{"metadata":{"name":"home","uid":null,"namespace":null,"resourceVersion":null}},"details":{"a":[1]}}'
)
BAD_SPECS: Mapping[str, str] = {
    "whole spec": '"none"',
    "transform": '{"count":"three"}',
    "raising transform": '{"count":-1}',
    "index": '{"customer":5}',
    "raising index": '{"size":"enormous"}',
    "nested index": '{"address":{"metadata":{"uid":7}}}',
    "predicate": '{"since":"yesterday"}',
    "enqueue": '{"payer":{"name":"x"}}',
    "handler": '{"color":[]}',
    "deep lists": '{"details":' + "[" * LEVELS + "]" * LEVELS + "}",
    # The names of these members are in metadata.managedFields as well, as deep.
    "deep maps": '{"details":' + '{"a":' * LEVELS + "1" + "}" * LEVELS + "}",
}
FOR_LISTENERS = ("predicate", "enqueue", "handler")
"""What only a listener cannot read: the object stays in the cache, and is not in quarantine."""
TURNS = ("listed", "created", "turned", "deleted")
"""In the first list; when it is created later; a good one that is changed; the first again, and deleted in the end."""


# --- what the program has of its own ---


def without_annotations(order: Order) -> Order:
    """The transform."""
    if order.spec.count < 0:
        raise ValueError("less than nothing")
    return order.evolve(metadata=order.metadata.evolve(annotations={}))


def by_customer(order: Order) -> Iterable[str]:
    return (order.spec.customer,)


def by_size(order: Order) -> Iterable[str]:
    # A KeyError for other sizes.
    return ({"small": "S", "large": "L"}[order.spec.size], order.spec.address.metadata.uid)


def is_new_enough(event: Notification[Order]) -> bool:
    order = event.new if isinstance(event, Updated) else event.object
    return order.spec.since is None or order.spec.since.year >= 2000


def with_payer(order: Order) -> Iterable[Request]:
    payer = order.spec.payer
    return [Request.of(order), *([Request(order.namespace, payer)] if payer else [])]


@attrs.define(eq=False)
class Painter(ResourceEventHandler[Order]):
    """A handler that reads a field, and remembers which objects were reported as gone."""

    gone: list[str] = attrs.field(factory=list)

    async def on_add(self, obj: Order, *, is_initial: bool) -> None:
        assert obj.spec.color is not None

    async def on_update(self, old: Order, new: Order) -> None:
        assert new.spec.color is not None

    async def on_delete(self, obj: Order, *, is_stale: bool) -> None:
        self.gone.append(key_of(obj))


@attrs.define(eq=False)
class Reconciler:
    """The reconcile function: what it found under each key, and when."""

    lister: Lister[Order]
    states: dict[str, tuple[int, float]] = attrs.field(factory=dict)
    """The newest serial, and when it was seen first."""
    gone: set[str] = attrs.field(factory=set)
    refused: set[str] = attrs.field(factory=set)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def __call__(self, request: Request) -> None:
        key = str(request)
        try:
            order = self.lister.get(request)
        except QuarantinedError as error:
            self.refused.add(error.key)
            return
        if order is None:
            self.gone.add(key)
            return
        assert order.metadata.annotations == {}
        if self.states.get(key, (-1, 0.0))[0] < order.spec.serial:
            self.states[key] = (order.spec.serial, trio.current_time())
            self._news.set()

    async def wait_for(self, expected: Mapping[str, int]) -> None:
        """Wait until it has seen these serials."""
        for key, serial in expected.items():
            while self.states.get(key, (-1, 0.0))[0] < serial:
                self._news = trio.Event()
                await self._news.wait()


# --- the writer ---


@attrs.define(eq=False)
class Writer:
    """Writes to the server, and remembers when each write had ended; JSON that no client of ours can encode, too."""

    client: Client
    http: httpx.AsyncClient
    written: dict[str, tuple[int, float]] = attrs.field(factory=dict)
    """The serial of the newest good state of an object, and when the server had it."""

    def orders(self, key: str) -> Api[Order]:
        return self.client.api(Order, namespace=key.partition("/")[0])

    async def create(self, key: str, spec: str = GOOD_SPEC) -> None:
        namespace, _, name = key.partition("/")
        metadata = f'{{"name":"{name}","annotations":{{"note":"fragile"}}}}'
        body = f'{{"apiVersion":"shop.example.com/v1","kind":"Order","metadata":{metadata},"spec":{spec}}}'
        path = f"/apis/shop.example.com/v1/namespaces/{namespace}/orders"
        response = await self.http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert response.status_code == 201, response.text[:300]
        if spec == GOOD_SPEC:
            self.written[key] = (0, trio.current_time())

    async def change(self, key: str) -> Order:
        """Change a good object."""
        serial = next(numbers)
        changed = await self.orders(key).patch(key.partition("/")[2], {"spec": {"serial": serial}})
        self.written[key] = (serial, trio.current_time())
        return changed

    async def set_spec(self, key: str, spec: str) -> None:
        namespace, _, name = key.partition("/")
        path = f"/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}"
        patch = f'[{{"op":"replace","path":"/spec","value":{spec}}}]'
        response = await self.http.patch(path, content=patch, headers={"Content-Type": "application/json-patch+json"})
        assert response.status_code == 200, response.text[:300]

    async def mend(self, key: str) -> None:
        serial = next(numbers)
        await self.set_spec(key, GOOD_SPEC.replace('"count":1', f'"count":1,"serial":{serial}'))
        self.written[key] = (serial, trio.current_time())

    async def delete(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        response = await self.http.delete(f"/apis/shop.example.com/v1/namespaces/{namespace}/orders/{name}")
        assert response.status_code == 200, response.text[:300]


@asynccontextmanager
async def writing(control_plane: ControlPlane) -> AsyncIterator[Writer]:
    directory = control_plane.directory
    tls = ssl.create_default_context(cafile=directory / "ca.crt")
    tls.load_cert_chain(directory / "client.crt", directory / "client.key")
    async with (
        open_client(load_config(kubeconfig=control_plane.kubeconfig)) as client,
        httpx.AsyncClient(base_url=control_plane.url, verify=tls, trust_env=False, timeout=60) as http,
    ):
        yield Writer(client, http)


# --- who is bad, and from when on ---


@attrs.frozen
class Tenant:
    """A namespace, with one bad object and many good ones."""

    namespace: str
    number: int

    @property
    def bad(self) -> str:
        return f"{self.namespace}/bad"

    @property
    def way(self) -> str:
        """In which way its object is bad."""
        return list(BAD_SPECS)[self.number % len(BAD_SPECS)]

    @property
    def bad_spec(self) -> str:
        return BAD_SPECS[self.way]

    @property
    def good(self) -> list[str]:
        return [f"{self.namespace}/good-{n}" for n in range(GOOD)]

    @property
    def turn(self) -> str:
        """When its object becomes bad; each way of being bad has each of them."""
        return TURNS[self.number // len(BAD_SPECS) % len(TURNS)]


async def create_tenants(writer: Writer) -> list[Tenant]:
    """Create the kind and the namespaces, and half of the good objects."""
    definitions = writer.client.api(CustomResourceDefinition)
    await definitions.create(DEFINITION)
    await wait_for(definitions, DEFINITION.name, has_condition("Established"))
    prefix = f"tenant-{next(numbers)}"
    tenants = [Tenant(f"{prefix}-{number}", number) for number in range(TENANTS)]
    namespaces = writer.client.api(Namespace)
    await in_parallel([partial(namespaces.create, Namespace(metadata=ObjectMeta(name=t.namespace))) for t in tenants])
    while True:  # a new kind is not served at once when it is established, and nothing says when
        try:
            await writer.client.api(Order).list()
        except StatusError:
            await trio.sleep(0.1)
        else:
            break
    calls: list[Callable[[], Awaitable[object]]] = []
    for tenant in tenants:
        calls += [partial(writer.create, key) for key in tenant.good[::2]]
        if tenant.turn in ("listed", "deleted"):
            calls.append(partial(writer.create, tenant.bad, tenant.bad_spec))
        elif tenant.turn == "turned":
            calls.append(partial(writer.create, tenant.bad))
    await in_parallel(calls)
    return tenants


def storm(writer: Writer, tenants: Iterable[Tenant]) -> list[Callable[[], Awaitable[object]]]:
    """Every good object is created or changed, and the rest of the bad ones become bad, in a random order."""
    calls: list[Callable[[], Awaitable[object]]] = []
    for tenant in tenants:
        calls += [partial(writer.change, key) for key in tenant.good[::2]]
        calls += [partial(writer.create, key) for key in tenant.good[1::2]]
        if tenant.turn == "created":
            calls.append(partial(writer.create, tenant.bad, tenant.bad_spec))
        elif tenant.turn == "turned":
            calls.append(partial(writer.set_spec, tenant.bad, tenant.bad_spec))
    random.Random(12).shuffle(calls)
    return calls


async def latencies(writer: Writer, reconciler: Reconciler) -> dict[str, float]:
    """Wait until what was written is handled, and return how long each of it took; what is not handled is missing."""
    expected = {key: serial for key, (serial, _) in writer.written.items()}
    with trio.move_on_after(10):
        await reconciler.wait_for(expected)
    handled = {key: reconciler.states[key] for key in expected if key in reconciler.states}
    return {key: when - writer.written[key][1] for key, (serial, when) in handled.items() if serial == expected[key]}


def are_in_time(took: Mapping[str, float]) -> bool:
    """Whether changes were handled at once, but for those of a pause of the machine and one in a hundred others."""
    late = [seconds for seconds in took.values() if seconds > IN_TIME]
    return len(late) <= AT_ONCE + len(took) // 100


@pytest.mark.alone
async def test_good_objects_are_handled_at_once_and_a_hundred_bad_ones_are_named(control_plane: ControlPlane) -> None:
    config = load_config(kubeconfig=control_plane.kubeconfig)
    async with writing(control_plane) as writer, open_client(config) as client, trio.open_nursery() as nursery:
        tenants = await create_tenants(writer)
        bad = {tenant.bad for tenant in tenants}
        factory = SharedInformerFactory(client)
        indexers = {"customer": by_customer, "size": by_size}
        informer = factory.informer(Order, transform=without_annotations, indexers=indexers)
        lister, painter = informer.lister, Painter()
        informer.add_event_handler(painter)
        reconciler = Reconciler(lister)
        controller = Controller("orders", reconciler, workers=4)
        controller.watch(informer, enqueue=with_payer, predicates=[is_new_enough])
        with trio.fail_after(30):
            await nursery.start(factory.run)
            await nursery.start(controller.run)

        async def wait_for_everything() -> None:
            """Wait until the cache and all listeners have what was written, that of the bad objects as well."""
            await informer.wait_until_at_least(await writer.change(tenants[0].good[0]))
            await trio.testing.wait_all_tasks_blocked()

        writer.written.clear()
        began = trio.current_time()
        await in_parallel(storm(writer, tenants), at_once=AT_ONCE)
        assert len(writer.written) == TENANTS * GOOD
        writing_took = trio.current_time() - began
        took = await latencies(writer, reconciler)
        report(
            f"{len(writer.written)} changes of good objects among {len(bad)} bad ones, seconds",
            ("written in", "handled", "handled after: median", "max"),
            [(writing_took, len(took), statistics.median(took.values()), max(took.values()))],
        )
        assert len(took) == TENANTS * GOOD, "some were not handled within ten seconds"
        assert are_in_time(took)
        await wait_for_everything()

        marked = {tenant.bad for tenant in tenants if tenant.way not in FOR_LISTENERS}
        assert lister.quarantined().keys() == marked
        assert {each.reason for each in lister.quarantined().values()} == set(QuarantineReason), "each stage found some"
        problems = " ".join(factory.problems().values())
        assert [key for key in marked if key not in problems] == []
        for tenant in tenants:
            if tenant.way in FOR_LISTENERS:
                assert lister.get("bad", namespace=tenant.namespace) is not None
                continue
            with pytest.raises(QuarantinedError) as caught:
                lister.get("bad", namespace=tenant.namespace)
            assert caught.value.key == tenant.bad
            if tenant.turn == "turned":
                assert lister.get("bad", namespace=tenant.namespace, allow_stale=True) is not None
        assert painter.gone == []
        assert reconciler.gone == set()
        assert informer.statistics().reflector.lists == 1, "the watch went on"

        deleted = [tenant for tenant in tenants if tenant.turn == "deleted"]
        mended = [tenant for tenant in tenants if tenant.turn != "deleted"]
        writer.written.clear()
        calls: list[Callable[[], Awaitable[object]]] = [partial(writer.mend, tenant.bad) for tenant in mended]
        calls += [partial(writer.delete, tenant.bad) for tenant in deleted]
        await in_parallel(calls, at_once=AT_ONCE)
        took = await latencies(writer, reconciler)
        assert sorted(took) == sorted(tenant.bad for tenant in mended)
        assert are_in_time(took)
        await wait_for_everything()
        assert lister.quarantined() == {}
        assert factory.problems() == {}
        assert [tenant for tenant in mended if lister.get("bad", namespace=tenant.namespace) is None] == []
        assert [tenant for tenant in deleted if lister.get("bad", namespace=tenant.namespace) is not None] == []
        nursery.cancel_scope.cancel()

"""Write a controller of pods without the class Controller: an informer, a rate-limited
queue of events, and one worker.

When a new pod with the label ``app=nginx`` is running, the Deployment ``tools`` is
restarted. A failed event is retried five times, and then dropped until the next event
of the pod::

    python examples/custom_controller.py --embedded
    python examples/custom_controller.py -c app.yaml

The file is read again when it changes. A new log level applies immediately. After a
change of the kubeconfig, the controller is restarted for the new cluster::

    Log: {Level: info}  # debug, info, warn or error
    Kubeconfig: /home/me/.kube/config

``workqueue_controller.py`` uses a queue of keys, so that the order of events does not
matter. ``replica_counter.py`` is the shortest of these controllers.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, NamedTuple

import attrs
import trio
import yaml
from command_line import (
    Arguments,
    check_reachable,
    connect,
    file,
    log_to_output,
    parser_of,
    start,
)
from simple_watch import LABELS, reason_of, restart_tools, simulate_nginx

from trioformer import (
    Client,
    ConfigError,
    HandlerRegistration,
    ResourceEventHandler,
    SharedInformer,
    SharedInformerFactory,
    load_config,
)
from trioformer.manager import FollowedFile, follow_file
from trioformer.models import key_of
from trioformer.models.core_v1 import Pod
from trioformer.workqueue import RateLimitingQueue, default_controller_rate_limiter

MAX_RETRIES = 5
PATIENCE = 10.0
"""Seconds in which the worker must finish its items at the end."""
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
}

logger = logging.getLogger("custom_controller")


@attrs.frozen
class Settings:
    """The content of the configuration file."""

    level: int = logging.INFO
    kubeconfig: str | None = None

    @classmethod
    def parse(cls, text: str) -> Settings:
        """Parse and check a file, so that an invalid configuration does not replace
        the current one.
        """
        try:
            # None while an editor writes the file, which is an AttributeError below
            given: Any = yaml.safe_load(text)
            if unknown := given.keys() - {"Log", "Kubeconfig"}:
                raise ConfigError(f"{min(unknown)!r} is none of Log, Kubeconfig")
            log: Any = given.get("Log") or {}
            level, kubeconfig = log.get("Level", "info"), given.get("Kubeconfig")
            settings = cls(
                LEVELS[str(level).lower()],
                None if kubeconfig is None else str(kubeconfig),
            )
        except KeyError as error:
            raise ConfigError(
                f"Log.Level is {error}, which is none of {', '.join(LEVELS)}"
            ) from None
        except (yaml.YAMLError, AttributeError):
            raise ConfigError(
                "not a mapping in YAML such as Log: {Level: info}"
            ) from None
        if settings.kubeconfig is not None:
            load_config(kubeconfig=settings.kubeconfig)
        return settings


class Item(NamedTuple):
    """An item of the queue, which consists of the type of the event and the key of the
    object.
    """

    event: str
    key: str


@attrs.define
class Enqueuer(ResourceEventHandler[Pod]):
    """Adds each event to the queue. Pending events of the same type for the same
    object are one item.
    """

    queue: RateLimitingQueue[Item]

    async def on_add(self, pod: Pod, *, is_initial: bool) -> None:
        self.queue.add(Item("ADDED", key_of(pod)))

    async def on_update(self, old: Pod, new: Pod) -> None:
        self.queue.add(Item("MODIFIED", key_of(new)))

    async def on_delete(self, pod: Pod, *, is_stale: bool) -> None:
        self.queue.add(Item("DELETED", key_of(pod)))


@attrs.define(eq=False)
class PodController:
    """Restarts the Deployment ``tools`` when a new pod is running."""

    client: Client
    pods: SharedInformer[Pod]
    queue: RateLimitingQueue[Item] = attrs.field(
        factory=lambda: RateLimitingQueue(
            default_controller_rate_limiter(), name="pods"
        )
    )
    pending: set[str] = attrs.field(factory=set[str])
    """The keys of the pods that were added while they were pending, and for which
    nothing was restarted yet.
    """

    async def sync(self, item: Item) -> None:
        """Process an event by reading the current state of its object."""
        event, key = item
        namespace, _, name = key.partition("/")
        if event == "DELETED":
            self.pending.discard(key)
            logger.info("Pod[%s] is DELETED", key)
            return
        pod = self.pods.lister.get(name, namespace=namespace)
        if pod is None:
            logger.info("Object[%s] does not exists, maybe it has been deleted", key)
            return
        logger.info("Pod[%s] is %s, status = %s", pod.name, event, pod.status.phase)
        if event == "ADDED" and pod.status.phase == "Pending":
            self.pending.add(key)
        elif (
            event == "MODIFIED"
            and pod.status.phase == "Running"
            and key in self.pending
        ):
            logger.info("A new pod is created, need to restart tools")
            await restart_tools(self.client, namespace)
            logger.debug("Restart tools success")
            self.pending.discard(key)

    async def process(self, item: Item) -> None:
        """Process one item. After a failure, retry the item or drop it."""
        try:
            await self.sync(item)
        except Exception as error:  # noqa: BLE001  # any error concerns only this item
            if self.queue.num_requeues(item) < MAX_RETRIES:
                logger.info("Error synching pod[%s]: %s", item.key, reason_of(error))
                self.queue.add_rate_limited(item)
            else:
                logger.info(
                    "Dropping pod[%s] out of the queue: %s", item.key, reason_of(error)
                )

    async def work(self, registration: HandlerRegistration[Pod]) -> None:
        """Process items after the handler has synced, until the queue is shut down."""
        await registration.wait_until_synced()
        with suppress(trio.EndOfChannel):
            while True:
                # a normal end resets the failures, unless the item is added again
                async with self.queue.take() as item:
                    await self.process(item)

    async def run(self, stop: trio.Event) -> None:
        """Work until ``stop`` is set, and then process the remaining items of the
        queue.
        """
        logger.info("Starting Pod controller")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                self.work, self.pods.add_event_handler(Enqueuer(self.queue))
            )
            await stop.wait()
            logger.info("Stopping Pod controller")
            with trio.move_on_after(PATIENCE):
                await self.queue.drain()
            nursery.cancel_scope.cancel()


async def serve(
    client: Client, namespace: str, stop: trio.Event, *, is_first: bool = True
) -> None:
    """Run the controller and its informer. At the start of the program, an unreachable
    cluster is an error. Later, the controller waits for it.
    """
    factory = SharedInformerFactory(client, namespace=namespace, label_selector=LABELS)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(factory.run)
        if is_first:
            nursery.start_soon(check_reachable, client)
        await PodController(client, factory.informer(Pod)).run(stop)
        nursery.cancel_scope.cancel()


async def follow(
    config: FollowedFile[Settings], arguments: Arguments, stop: trio.Event
) -> None:
    """Serve with the configuration in the file, and restart when the kubeconfig in it
    changes. Flags take precedence over the file.
    """
    flag, is_first = arguments.kubeconfig, True
    while not stop.is_set():
        settings, ended = config.value, trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(set_after, stop, ended)
            nursery.start_soon(
                apply_changes, config, settings, ended if flag is None else trio.Event()
            )
            arguments.kubeconfig = flag or settings.kubeconfig
            async with connect(arguments, simulate_nginx) as client:
                await serve(client, arguments.namespace, ended, is_first=is_first)
            nursery.cancel_scope.cancel()
        is_first = False


async def apply_changes(
    config: FollowedFile[Settings], current: Settings, ended: trio.Event
) -> None:
    """Set the log level when it changes in the file, and set ``ended`` when the
    kubeconfig changes.
    """
    kubeconfig = current.kubeconfig
    while current.kubeconfig == kubeconfig:
        logger.setLevel(current.level)
        current = await config.changed(current)
    ended.set()


async def set_after(first: trio.Event, then: trio.Event) -> None:
    """Wait for one event, and then set another event."""
    await first.wait()
    then.set()


async def main(arguments: Arguments, stop: trio.Event) -> None:
    """Run the controller until ``stop`` is set."""
    log_to_output(logger, "%(asctime)s.%(msecs)03d [%(levelname)s] %(message)s")
    if arguments.config is None:
        async with connect(arguments, simulate_nginx) as client:
            await serve(client, arguments.namespace, stop)
        return
    config = follow_file(arguments.config, Settings.parse)
    async with trio.open_nursery() as nursery:
        await nursery.start(config.run)
        await follow(config, arguments, stop)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    parser = parser_of(__doc__, default_namespace="default")
    parser.add_argument(
        "-c",
        "--config",
        type=file,
        metavar="FILE",
        help="the level and the kubeconfig, in YAML",
    )
    stop = trio.Event()
    start(main, parser, stop=stop)

"""Record an Event for every pod whose containers restart.

Run it against the cluster that kubectl uses, or against an API server in this process
with a pod that restarts every second. Stop it with Ctrl-C::

    python examples/events.py --embedded

In a cluster, ``kubectl describe pod`` shows the Events.
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, parser_of, start
from simulations import simulate_restarts

from trioformer import Client, ResourceEventHandler, SharedInformerFactory
from trioformer.events import EventRecorder
from trioformer.models.core_v1 import Pod
from trioformer.models.events_v1 import Event


def restarts(pod: Pod) -> dict[str, int]:
    """Return the number of restarts of each container."""
    return {
        status.name: status.restart_count for status in pod.status.container_statuses
    }


class RestartReporter(ResourceEventHandler[Pod]):
    """Records each restart. The recorder writes the Events in the background."""

    def __init__(self, recorder: EventRecorder) -> None:
        self.recorder = recorder

    async def on_update(self, old: Pod, new: Pod) -> None:
        before = restarts(old)
        for name, count in restarts(new).items():
            if count > before.get(name, 0):
                self.recorder.event(
                    new,
                    type="Warning",
                    reason="ContainerRestarted",
                    action="Watching",
                    # without a number, so that equal Events form one series
                    note=f"container {name} has restarted",
                )
                print(
                    f"{new.namespace}/{new.name}: container {name} has restarted, "
                    f"{count} times in all"
                )


async def watch(factory: SharedInformerFactory) -> None:
    """Run the factory, and print a line when the cache has synced."""
    async with trio.open_nursery() as nursery:
        await nursery.start(factory.run)
        print("watching pods")


async def serve(
    client: Client, stop: trio.Event, *, namespace: str | None = None
) -> None:
    """Report restarts until ``stop`` is set."""
    recorder = EventRecorder(client, controller="example.com/restart-reporter")
    factory = SharedInformerFactory(client, namespace=namespace)
    factory.informer(Pod).add_event_handler(RestartReporter(recorder))
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        # not start(), so that a signal ends it even if the server does not respond
        nursery.start_soon(watch, factory)
        await stop.wait()
        # the recorder then writes the remaining Events
        nursery.cancel_scope.cancel()
    statistics = recorder.statistics()
    print(f"{statistics.recorded} restarts recorded, {statistics.written} written")


async def show(client: Client) -> None:
    """Print all changes of Events, as ``kubectl get events --watch`` does."""
    async with client.api(Event).watch() as changes:
        async for change in changes:
            event = change.object
            count = event.series.count if event.series is not None else 1
            print(
                f"{event.type} {event.reason} "
                f"{event.regarding.kind}/{event.regarding.name}: "
                f"{event.note} (x{count})"
            )


async def main(arguments: Arguments, stop: trio.Event) -> None:
    async with (
        connect(arguments, simulate_restarts) as client,
        trio.open_nursery() as nursery,
    ):
        if arguments.embedded:
            nursery.start_soon(show, client)
        await serve(client, stop, namespace=arguments.namespace)
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    start(main, parser_of(__doc__), stop=trio.Event())

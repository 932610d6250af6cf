"""Handle pods that fail or recover. A filter converts these updates to additions and
deletions.

Run it against the cluster that kubectl uses, or against a simulated one, and stop it
with Ctrl-C::

    python examples/filtering_handler.py --embedded
"""

from __future__ import annotations

import trio
from command_line import Arguments, connect, parser_of, start
from simulations import simulate_failures

from trioformer import Notification, ResourceEventHandler, SharedInformerFactory
from trioformer.cache import FilteringHandler
from trioformer.models.core_v1 import Pod


def has_failed(pod: Pod) -> bool:
    """Return whether a pod passes the filter. The result depends only on the pod."""
    return pod.status.phase == "Failed"


class FailureReporter(ResourceEventHandler[Pod]):
    """Reports failed pods, which are the only pods that pass the filter."""

    async def on_add(self, pod: Pod, *, is_initial: bool) -> None:
        """Handle a failed pod. If ``is_initial`` is true, it failed before this
        program started.
        """
        print("had failed:" if is_initial else "failed:", pod.name)

    async def on_delete(self, pod: Pod, *, is_stale: bool) -> None:
        """Handle a failed pod that was deleted or has recovered. ``pod`` is its last
        failed state.
        """
        print("no longer failed:", pod.name)


async def report(error: Exception, notification: Notification[Pod]) -> None:
    """Print an error of the handler or the filter, and continue."""
    print("could not handle", type(notification).__name__, repr(error))


async def main(arguments: Arguments) -> None:
    async with (
        connect(arguments, simulate_failures) as client,
        trio.open_nursery() as nursery,
    ):
        factory = SharedInformerFactory(client, namespace=arguments.namespace)
        informer = factory.informer(Pod)
        registration = informer.add_event_handler(
            FilteringHandler(has_failed, FailureReporter()), on_error=report
        )
        await nursery.start(factory.run)
        # the handler has processed all initial pods
        await registration.wait_until_synced()
        print(
            registration.statistics().failed_initial,
            "could not be handled; waiting for more",
        )


if __name__ == "__main__":
    start(main, parser_of(__doc__))

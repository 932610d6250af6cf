"""Leader election: one of several processes leads; when it ends or fails, another one
takes over.

Run it in two terminals, against the cluster that kubectl uses, and stop one with Ctrl-C
or ``kill``; or against an embedded server, where another candidate leads first::

    python examples/leader.py --embedded
    python examples/leader.py --identity a
    python examples/leader.py --identity b
"""

from __future__ import annotations

from itertools import count

import trio
from command_line import Arguments, connect, namespace_of, parser_of, seconds, start
from simulations import simulate_rival

from trioformer.leaderelection import LeaderElectionOptions, Leadership, run_as_leader


async def work(lead: Leadership) -> None:
    """Do the work that only one process may do at a time."""
    print(f"{lead.identity} leads, transitions {lead.transitions}")
    try:
        for number in count(1):
            await trio.sleep(2)
            print(f"{lead.identity} has done task {number}")
    finally:
        # The lease is still renewed while this runs, and released after it.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 3):
            await trio.sleep(0.1)
        print(f"{lead.identity} has cleaned up")


def options_of(arguments: Arguments) -> LeaderElectionOptions:
    """Return the times of the election, and what is called when the leader changes."""
    return LeaderElectionOptions(
        lease_duration=7.5 * arguments.retry_period,
        renew_deadline=5 * arguments.retry_period,
        retry_period=arguments.retry_period,
        on_new_leader=lambda leader: print(f"the leader is {leader or 'nobody'}"),
    )


async def main(arguments: Arguments) -> None:
    """Wait for the lease, then work; ends with a LeadershipLostError when the lease
    cannot be kept.
    """
    identity, options = arguments.identity, options_of(arguments)
    async with connect(arguments, simulate_rival) as client:
        namespace = namespace_of(arguments, client)
        await run_as_leader(
            client,
            work,
            name="example",
            namespace=namespace,
            identity=identity,
            options=options,
        )


if __name__ == "__main__":
    parser = parser_of(__doc__, is_namespaced=True)
    parser.add_argument(
        "--identity",
        metavar="NAME",
        help="unique to the process; default: host name and a random part",
    )
    parser.add_argument(
        "--retry-period",
        type=seconds,
        default=2.0,
        metavar="SECONDS",
        help="default: 2",
    )
    # Ctrl-C, or SIGTERM with which Kubernetes ends a pod, cancels the work; a
    # LeadershipLostError exits with 1.
    start(main, parser, check=options_of)

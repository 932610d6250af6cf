"""Elect a leader among several processes. When the leader ends or fails, another
process takes over.

Run it in two terminals against the cluster that kubectl uses, and stop one process
with Ctrl-C or ``kill``. Or run it against an embedded server, in which another
candidate leads first::

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
    """Do the work that only the leader may do."""
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
    """Return the times of the election and its callback for a new leader."""
    return LeaderElectionOptions(
        lease_duration=7.5 * arguments.retry_period,
        renew_deadline=5 * arguments.retry_period,
        retry_period=arguments.retry_period,
        on_new_leader=lambda leader: print(f"the leader is {leader or 'nobody'}"),
    )


async def main(arguments: Arguments) -> None:
    """Wait for the lease, and then work. If the lease cannot be renewed,
    LeadershipLostError is raised.
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
    # Ctrl-C, or the SIGTERM of Kubernetes, cancels the work. After a
    # LeadershipLostError, the exit code is 1.
    start(main, parser, check=options_of)

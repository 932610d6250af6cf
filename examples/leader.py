"""Leader election: one of several processes leads; when it ends or fails, another one takes over.

Run it in two terminals, against the cluster that kubectl uses, and stop one with Ctrl-C or ``kill``::

    python examples/leader.py --identity a
    python examples/leader.py --identity b
"""

from __future__ import annotations

import argparse
import sys

import trio

from trioformer import open_client, run
from trioformer.leaderelection import LeaderElectionOptions, Leadership, run_as_leader


async def work(lead: Leadership) -> None:
    """Do the work that only one process may do at a time."""
    print(f"{lead.identity} leads, transitions {lead.transitions}")
    try:
        await trio.sleep_forever()
    finally:
        # The lease is still renewed while this runs, and released after it.
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 3):
            await trio.sleep(0.1)
        print(f"{lead.identity} has cleaned up")


async def main(identity: str | None, retry_period: float) -> None:
    """Wait for the lease, then work; ends with a LeadershipLostError when the lease cannot be kept."""
    options = LeaderElectionOptions(
        lease_duration=7.5 * retry_period,
        renew_deadline=5 * retry_period,
        retry_period=retry_period,
        on_new_leader=lambda leader: print(f"the leader is {leader or 'nobody'}"),
    )
    async with open_client() as client:
        await run_as_leader(client, work, name="example", namespace="default", identity=identity, options=options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Lead, or wait to lead.")
    parser.add_argument("--identity", help="unique to the process; default: host name and a random part")
    parser.add_argument("--retry-period", type=float, default=2.0, metavar="SECONDS", help="default: 2")
    arguments = parser.parse_args()
    # Ctrl-C, or SIGTERM with which Kubernetes ends a pod, cancels the work; a LeadershipLostError exits with 1.
    sys.exit(run(main, arguments.identity, arguments.retry_period))

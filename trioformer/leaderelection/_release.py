"""Release the Lease when the leader code has ended.

The problem: until the Lease is empty, the next leader waits for its expiry.  So the release is
tried several times, even if the caller was cancelled.  But a program that ends must not wait for an API server that
does not respond.

Source: client-go ``tools/leaderelection/leaderelection.go``, ``release``.
"""

from __future__ import annotations

import logging
from typing import Final

import trio

from .._retry import REQUEST_ERRORS, Backoff, BackoffPolicy
from ..errors import ConflictError
from ._leadership import LeaderElectionOptions
from ._lease_claim import LeaseClaim

logger = logging.getLogger("trioformer.leaderelection")

RELEASE_TRIES: Final = 3
"""Failures after which a release gives up."""
RELEASE_BACKOFF: Final = BackoffPolicy(initial=0.1, factor=3.0, maximum=1.0, jitter=0.5)
RELEASE_CONFLICTS: Final = 5
"""Conflicts of a release that are retried immediately; further ones count as failures."""


async def release(claim: LeaseClaim, identity: str, options: LeaderElectionOptions) -> None:
    """Make the Lease available immediately; log failures, after which the Lease expires.

    Cancellation:
        Shielded, for ``renew_deadline`` at most.
    """
    delays = Backoff(RELEASE_BACKOFF, rng=options.rng)
    failures = conflicts = 0
    with trio.CancelScope(shield=True, deadline=trio.current_time() + options.renew_deadline):
        while failures < RELEASE_TRIES:
            try:
                was_held = await claim.try_release()
            except REQUEST_ERRORS as error:
                claim.failed(error, "cannot be released, retrying")
                conflicts += isinstance(error, ConflictError)
                if isinstance(error, ConflictError) and conflicts <= RELEASE_CONFLICTS:
                    continue
                failures += 1
                await trio.sleep(delays.next_delay())
            else:
                if was_held:
                    logger.info("lease %s: released by %r", claim, identity)
                else:
                    logger.info("lease %s: not held by %r, nothing to release", claim, identity)
                return
    logger.warning("lease %s: not released by %r; it expires in %g s", claim, identity, options.lease_duration)

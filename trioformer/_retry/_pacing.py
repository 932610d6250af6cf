"""When the next watch may begin, and how long one may live: for resuming watches and for reflectors.

Every way to the next watch passes a backoff or a watch that lived for a second, and the backoff begins anew only after
a watch has lived for 30 s: a server that fails at once, cleanly or not, is never asked in a tight loop.
A proxy that cuts every watch short costs a tenth of the time, not most of it.

A failure sets a time before which nothing is sent, instead of sleeping: a reader that gives up its read in the middle
of a backoff finds the rest of the backoff when it comes back.
"""

from __future__ import annotations

import math
import random
from typing import Final, final

import attrs
import trio

from ._backoff import Backoff, BackoffPolicy

MIN_WATCH_TIMEOUT: Final = 300
"""Seconds; each watch asks for a random time between this and its double, so that they do not all end together."""
END_GRACE: Final = 30.0
"""Seconds that a watch may outlive its ``timeoutSeconds``."""
LONGEST_SILENCE: Final = 90.0
"""Seconds without a word that a server may take which is known to send bookmarks, about one a minute."""
HEALTHY_AFTER: Final = 30.0
"""Seconds that a watch must have lived for the backoff to start anew."""
VERY_SHORT: Final = 1.0
"""Seconds; a watch that ends sooner was refused in all but name.  Also the least time between two requests."""
PAUSE_SHARE: Final = 0.1
"""How much of a short watch's life is waited before the next one."""


def watch_timeout(rng: random.Random) -> int:
    """Draw the ``timeoutSeconds`` of a watch, as client-go's reflector does."""
    return MIN_WATCH_TIMEOUT + int(rng.random() * MIN_WATCH_TIMEOUT)


@final
@attrs.define(eq=False)
class Pacing:
    """The lives of watches that follow each other, and the waits between them.

    Args:
        policy: How the waits grow; None for the default.
        rng: Randomness of the waits.
    """

    _policy: BackoffPolicy | None
    _rng: random.Random
    _backoff: Backoff = attrs.field(init=False)
    resume_at: float = attrs.field(default=-math.inf, init=False)
    """Before when the next watch must not begin, on trio's clock."""
    _began: float = attrs.field(default=-math.inf, init=False)
    _is_accepted: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._backoff = Backoff(self._policy, rng=self._rng)

    @property
    def is_waiting(self) -> bool:
        """Whether the next watch must not begin yet."""
        return self.resume_at > trio.current_time()

    @property
    def lived(self) -> float:
        """Seconds since the newest watch began."""
        return trio.current_time() - self._began

    @property
    def is_accepted(self) -> bool:
        """Whether the server has let the newest watch begin."""
        return self._is_accepted

    @property
    def is_very_short(self) -> bool:
        """Whether the newest watch is too young to count."""
        return self.lived < VERY_SHORT

    def began(self) -> None:
        """Note that a request is about to be sent; before, since a proxy may hold back the answer's head.

        A list counts too: it is no watch that could have lived.
        """
        self._began = trio.current_time()
        self._is_accepted = False

    def accepted(self) -> None:
        """Note that the server has let the watch begin."""
        self._is_accepted = True

    def ended(self) -> None:
        """Note that a watch is over: one that has lived is the server's health, and the backoff starts anew."""
        if self._is_accepted and self.lived >= HEALTHY_AFTER:
            self._backoff.reset()
        self._is_accepted = False

    def pause(self) -> None:
        """Let the next watch begin soon, if the newest was not too short to be one."""
        lived = self.lived
        if lived < VERY_SHORT:
            self.back_off()
        elif lived < HEALTHY_AFTER:
            self.resume_at = trio.current_time() + min(self._backoff.policy.initial, lived * PAUSE_SHARE)
        else:
            self._backoff.reset()
            self.resume_at = trio.current_time()

    def back_off(self, at_least: float = 0.0) -> None:
        """Let the next watch begin after a delay that grows with each failure, and after ``at_least`` seconds."""
        self.ended()
        self.resume_at = trio.current_time() + self._backoff.next_delay(at_least=at_least)

    def hold_off(self) -> None:
        """Keep a reader that gives up and comes back at once from making a request each time."""
        self.resume_at = max(self.resume_at, self._began + VERY_SHORT)

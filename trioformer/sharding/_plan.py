"""Decide which ranges a member takes, asks for and gives up.

The problem: each member decides alone, from its own view of the Leases, but all members together must spread the ranges
evenly and move few of them.  So every member computes the same assignment of ranges to live members:

- A live member keeps what it holds, up to its quota.  The quotas differ by at most one.
- The other ranges go to members below their quota, in the order of their scores (rendezvous hashing).

The assigned member of a range is the preferred one.  The assignment only says which member acts first, and when.
The Lease of the range decides which member owns it, so different views cost time or a move, but never lead to two
owners.

- A free range is taken by its preferred member at once.  The other live members follow in the order of their scores,
  one retry period apart, so a member that is stuck does not block the range.
- A range that a live member holds moves only when the set of live members has been quiet for some time: its preferred
  member asks for it, and its holder gives it up.  At most an eighth of the ranges move at a time.
- Other members leave a range that was given up to the member that asked for it, for a lease duration.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, final

import attrs

MOVING_FRACTION: Final = 8  # at most an eighth of the ranges


@final
@attrs.frozen(kw_only=True)
class RangeView:
    """A member's view of one range."""

    holder: str
    """The holder in the Lease, or an empty string if the range was released or never held."""
    free_at: float
    """The time when the range became free, or becomes free unless it is renewed.  Infinity for an own range."""
    retry_at: float = -math.inf
    """The time of the next attempt to take the range, or infinity during an attempt."""


@final
@attrs.frozen(kw_only=True)
class View:
    """A member's view of all Leases.  Times are on trio's clock."""

    identity: str
    asks: Mapping[str, Collection[int]]
    """The live members, and the ranges that each asks for.  A member takes nothing if it is not live itself."""
    ranges: Sequence[RangeView]
    giving_up: Collection[int]
    """The own ranges that are being given up."""
    quiet_at: float
    """The time when the set of live members has been the same for long enough."""
    now: float
    retry_period: float
    lease_duration: float


@final
@attrs.frozen(kw_only=True)
class Plan:
    """What a member does next."""

    preferred: Sequence[str]
    """The preferred member of each range.  Empty if there are no live members."""
    take: Sequence[int]
    """The free ranges to acquire now."""
    ask: Sequence[int]
    """The ranges to ask for."""
    give_up: Sequence[int]
    """The own ranges to give up."""
    wake_at: float
    """The time of the next plan if nothing changes."""


@functools.lru_cache(maxsize=65_536)
def score(member: str, number: int) -> int:
    """Return the rendezvous score of a member for a range."""
    return int.from_bytes(hashlib.blake2b(f"{member}/{number}".encode(), digest_size=8).digest(), "big")


def assign(members: Collection[str], holders: Sequence[str]) -> list[str]:
    """Return the preferred member of each range, from the live members and the live holder of each range, if any."""
    if not members:
        return []
    quota, extra = divmod(len(holders), len(members))
    loads = dict.fromkeys(members, 0)
    preferred = [""] * len(holders)
    pairs = [(holder == each, score(each, n), each, n) for each in members for n, holder in enumerate(holders)]
    for _, _, member, number in sorted(pairs, reverse=True):
        if not preferred[number] and loads[member] < quota + (extra > 0):
            extra -= loads[member] == quota
            loads[member] += 1
            preferred[number] = member
    return preferred


def make_plan(view: View) -> Plan:
    """Return what this member does next."""
    me, now = view.identity, view.now
    free = {number for number, each in enumerate(view.ranges) if now >= each.free_at}
    holders = [each.holder if now < each.free_at and each.holder in view.asks else "" for each in view.ranges]
    preferred = assign(view.asks, holders)
    wanted = {n for n, member in enumerate(preferred) if member != holders[n] and n in view.asks[member]}
    is_quiet = now >= view.quiet_at
    take, times = [], [view.quiet_at]
    for number, each in enumerate(view.ranges):
        if me not in view.asks or each.free_at == math.inf:
            continue
        due = each.free_at
        if preferred[number] != me:
            others = view.asks.keys() - {preferred[number]}
            due += view.retry_period * (1 + sum(score(other, number) > score(me, number) for other in others))
            due += view.lease_duration if number in wanted and not each.holder else 0
        due = max(due, each.retry_at)
        if now >= due:
            take.append(number)
        times += (each.free_at, due)
    room = max(1, len(holders) // MOVING_FRACTION) - len(free.union(view.giving_up))
    moving = sorted(wanted.difference(free, view.giving_up))[: max(room, 0)] if is_quiet else ()
    return Plan(
        preferred=preferred,
        take=take,
        ask=[n for n, member in enumerate(preferred) if member == me != holders[n]] if is_quiet else [],
        give_up=[n for n in moving if view.ranges[n].holder == me],
        wake_at=min((time for time in times if time > now), default=math.inf),
    )

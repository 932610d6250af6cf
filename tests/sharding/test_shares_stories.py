"""Random stories of replicas: they start, stop, die, lose their connection, are slow, and their clocks differ."""

from __future__ import annotations

import hypothesis
import pytest
import trio
import trio.testing
from hypothesis import strategies as st

from tests.support.share_stories import RANGES, ShareStory, tell


def check_story(seed: int) -> ShareStory:
    story = trio.run(tell, seed, clock=trio.testing.MockClock(autojump_threshold=0))
    text = "\n".join((f"seed {seed}", *story.events, *story.problems))
    assert story.problems == [], text
    assert story.moves <= RANGES + 3 * len(story.events), text
    return story


@hypothesis.given(seed=st.integers(0, 2**32))
@hypothesis.settings(max_examples=5)
def test_each_object_has_one_owner_whatever_happens(seed: int) -> None:
    check_story(seed)


@pytest.mark.long
def test_each_object_has_one_owner_in_a_thousand_stories() -> None:
    for seed in range(1_000):
        check_story(seed)


def test_the_stories_move_ranges_and_reconcile_objects() -> None:
    story = check_story(14)
    assert story.moves > 2 * RANGES
    assert sum(map(len, story.reconciled.values())) > 50

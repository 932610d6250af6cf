"""The embedded server's storage: revisions, history, compaction, and readers."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
import trio
import trio.testing
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trioformer.testing._storage._storage import Change, CompactedError, Storage, Stored


def obj(value: int = 0) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "value": value}


def value_of(stored: Stored) -> int:
    return int(json.loads(b"{" + stored.body)["value"])


def test_a_state_has_its_revision_but_no_kind_and_api_version() -> None:
    stored = Storage().put(
        "pods", "default/a", {"kind": "Pod", "apiVersion": "v1", "value": 1, "metadata": {"name": "a"}}
    )
    assert json.loads(b"{" + stored.body) == {"metadata": {"name": "a", "resourceVersion": "2"}, "value": 1}
    assert stored.body.startswith(b'"metadata":')
    assert (stored.namespace, stored.name) == ("default", "a")


def test_states_are_in_the_order_of_etcds_keys() -> None:
    storage = Storage()
    for key in ("a/z", "a-b/y", "a/b", "b/a"):
        storage.put("pods", key, obj())
    assert [stored.key for stored in storage.snapshot("pods")] == ["a-b/y", "a/b", "a/z", "b/a"]
    assert [stored.key for stored in storage.snapshot("pods", "a/")] == ["a/b", "a/z"]


def test_removing_a_missing_object_is_an_error() -> None:
    with pytest.raises(KeyError):
        Storage().remove("pods", "a", obj())


def test_a_future_revision_cannot_be_compacted() -> None:
    with pytest.raises(ValueError, match="the last revision is 1"):
        Storage().compact(2)


def test_the_history_is_bounded() -> None:
    storage = Storage(history_limit=8)
    for value in range(1_000):
        storage.put("pods", "a", obj(value))
    with pytest.raises(CompactedError) as caught:
        storage.position("pods", 2)
    kept = storage.read("pods", storage.position("pods", caught.value.oldest), limit=1_000)
    assert 8 <= len(kept) <= 10
    assert [value_of(change.object) for change in kept] == list(range(1_000 - len(kept), 1_000))


async def test_a_waiting_reader_wakes_for_its_own_resource_only() -> None:
    storage = Storage()
    woken: list[str] = []

    async def wait(resource: str) -> None:
        await storage.wait(resource)
        woken.append(resource)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, "pods")
        nursery.start_soon(wait, "nodes")
        await trio.testing.wait_all_tasks_blocked()
        storage.put("pods", "a", obj())
        await trio.testing.wait_all_tasks_blocked()
        assert woken == ["pods"]
        storage.wake()
    assert woken == ["pods", "nodes"]


KEYS = st.sampled_from(["a/x", "a/y", "b/x"])


class StorageAgainstModel(RuleBasedStateMachine):
    """The storage against a simple model: all states of all objects by revision."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage(history_limit=6)
        self.now: dict[str, int] = {}
        self.states: dict[int, dict[str, int]] = {1: {}}
        self.count = 0
        self.reader: tuple[int, dict[str, int]] | None = None

    def written(self) -> None:
        self.states[self.storage.revision] = dict(self.now)

    @rule(key=KEYS)
    def put(self, key: str) -> None:
        self.count += 1
        self.now[key] = self.count
        self.storage.put("pods", key, obj(self.count))
        self.written()

    @rule(key=KEYS)
    def remove(self, key: str) -> None:
        if key in self.now:
            last = self.now.pop(key)
            self.storage.remove("pods", key, obj(last))
            self.written()

    @rule()
    def write_something_else(self) -> None:
        self.storage.put("nodes", "n", obj())
        self.written()

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self.storage.compact(data.draw(st.integers(1, self.storage.revision)))

    @rule()
    def compact_everything(self) -> None:
        self.storage.compact()
        self.written()

    @rule()
    def open_reader(self) -> None:
        self.reader = (self.storage.position("pods", self.storage.revision), dict(self.now))

    @precondition(lambda self: self.reader is not None)
    @rule(limit=st.integers(1, 3))
    def read_on(self, limit: int) -> None:
        assert self.reader is not None
        position, seen = self.reader
        try:
            changes = self.storage.read("pods", position, limit)
        except CompactedError:
            self.reader = None
            return
        apply(seen, changes)
        self.reader = (position + len(changes), seen)
        if len(changes) < limit:
            assert seen == self.now

    @invariant()
    def every_kept_revision_replays_to_the_current_state(self) -> None:
        for revision, state in self.states.items():
            try:
                snapshot = self.storage.snapshot("pods", revision=revision)
                position = self.storage.position("pods", revision)
            except CompactedError as compacted:
                self.check_compacted(revision, compacted)
                continue
            assert revision >= self.storage.compacted
            seen = {stored.key: value_of(stored) for stored in snapshot}
            assert seen == state
            changes = self.storage.read("pods", position, limit=1_000)
            assert all(change.revision > revision for change in changes)
            apply(seen, changes)
            assert seen == self.now

    def check_compacted(self, revision: int, compacted: CompactedError) -> None:
        assert revision < compacted.oldest <= self.storage.revision

    @invariant()
    def the_current_state_is_that_of_the_model(self) -> None:
        assert {stored.key: value_of(stored) for stored in self.storage.snapshot("pods")} == self.now
        assert [stored.key for stored in self.storage.snapshot("pods", "a/")] == sorted(
            k for k in self.now if k[0] == "a"
        )
        assert self.storage.revision in self.states


def apply(seen: dict[str, int], changes: list[Change]) -> None:
    for change in changes:
        key = change.object.key
        before = seen.get(key)
        assert before == (None if change.before is None else value_of(change.before))
        assert (change.type == "ADDED") == (before is None)
        if change.type == "DELETED":
            del seen[key]
        else:
            seen[key] = value_of(change.object)


TestStorageAgainstModel = StorageAgainstModel.TestCase
TestStorageAgainstModel.settings = settings(max_examples=150, stateful_step_count=40)

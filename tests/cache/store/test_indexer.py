"""The indexer and its indices, against client-go's ``thread_safe_store_test.go``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scripted_list_watch import pod
from tests.support.turns import turns_during
from trioformer.cache import Lister, annotation_index, field_index, label_index
from trioformer.cache.store._indexer import NAMESPACE_INDEX, Indexer
from trioformer.errors import CacheNotSyncedError, IndexerError, SelectorError
from trioformer.models import ObjectMeta, from_json, key_of
from trioformer.models._internal import bytes_of
from trioformer.models.core_v1 import Pod


def store(indexer: Indexer[Pod], *pods: Pod) -> None:
    for obj in pods:
        indexer.put(key_of(obj), obj)


async def replace(indexer: Indexer[Pod], *pods: Pod) -> None:
    indexer.swap((await indexer.stage(pods))[0])


def labelled(name: str, **labels: str) -> Pod:
    pairs = ",".join(f'"{key}":"{value}"' for key, value in labels.items())
    return from_json(Pod, f'{{"metadata":{{"name":"{name}","namespace":"default","labels":{{{pairs}}}}}}}')


def by_label_values(obj: Pod) -> list[str]:
    return list(obj.metadata.labels.values())


def test_an_object_moves_between_the_values_of_an_index() -> None:
    indexer: Indexer[Pod] = Indexer({"node": field_index("spec.node_name")})
    store(indexer, pod("a", 1, node="n1"), pod("b", 2, node="n1"))
    store(indexer, pod("a", 3, node="n2"))
    assert indexer.index_keys("node", "n1") == ("default/b",)
    assert indexer.index_keys("node", "n2") == ("default/a",)
    assert indexer.index_values("node") == ("n1", "n2")


def test_an_index_value_without_objects_is_removed_and_others_stay() -> None:
    """In the namespace index and in other indices.

    client-go: TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex
    client-go: TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex
    """
    indexer: Indexer[Pod] = Indexer({"node": field_index("spec.node_name")})
    store(indexer, pod("a", node="n"), pod("b", node="n"))
    indexer.remove("default/a")
    assert indexer.index_values("node") == ("n",)
    assert indexer.index_keys("node", "n") == ("default/b",)
    indexer.remove("default/b")
    assert indexer.index_values("node") == ()
    assert indexer.index_values(NAMESPACE_INDEX) == ()
    indexer.remove("default/b")  # removing twice is allowed


def test_moving_between_many_values_leaves_no_stale_keys() -> None:
    """Neither of the object itself nor of one that shares some of the values.

    client-go: TestThreadSafeStoreIndexingFunctionsWithMultipleValues
    """
    indexer: Indexer[Pod] = Indexer({"labels": by_label_values})
    store(indexer, labelled("still", x="foo", z="baz"))
    for labels in ({"x": "foo", "y": "bar"}, {"x": "bar", "y": "bar2"}, {"x": "foo"}, {}, {"x": "foo", "y": "foo"}):
        store(indexer, labelled("a", **labels))
        assert set(indexer.index_values("labels")) == {"foo", "baz", *labels.values()}
        for value in ("foo", "bar", "bar2", "baz"):
            expected = {"default/a"} if value in labels.values() else set()
            expected |= {"default/still"} if value in ("foo", "baz") else set()
            assert set(indexer.index_keys("labels", value)) == expected
    indexer.remove("default/a")
    assert set(indexer.index_values("labels")) == {"foo", "baz"}


def test_an_object_is_found_under_each_of_its_values_and_only_those() -> None:
    """client-go: TestMultiIndexKeys, TestGetIndexFuncValues, TestIndex"""
    indexer: Indexer[Pod] = Indexer({"user": by_label_values})
    one, two, three = labelled("1", a="ernie", b="bert"), labelled("2", a="bert", b="oscar"), labelled("3", a="ernie")
    store(indexer, one, two, three)
    assert indexer.index_values("user") == ("ernie", "bert", "oscar")
    assert indexer.by_index("user", "ernie") == (one, three)
    assert indexer.by_index("user", "bert") == (one, two)
    assert indexer.by_index("user", "oscar") == (two,)
    assert indexer.by_index("user", "nobody") == ()
    indexer.remove("default/3")
    assert indexer.by_index("user", "ernie") == (one,)
    two = labelled("2", b="oscar")
    store(indexer, two)
    assert indexer.by_index("user", "bert") == (one,)
    assert indexer.by_index("user", "oscar") == (two,)


def test_an_index_added_later_holds_what_is_stored() -> None:
    indexer: Indexer[Pod] = Indexer()
    store(indexer, pod("a", node="n1"))
    indexer.add_indexers({"node": field_index("spec.node_name")})
    assert indexer.index_keys("node", "n1") == ("default/a",)
    assert list(indexer._indices) == ["namespace", "node"]


def test_an_existing_index_name_is_rejected_with_all_other_new_indexers() -> None:
    indexer: Indexer[Pod] = Indexer()
    with pytest.raises(IndexerError, match="index 'namespace' already exists"):
        indexer.add_indexers({"other": by_label_values, "namespace": by_label_values})
    assert list(indexer._indices) == ["namespace"]


def test_an_unknown_index_raises_an_error_with_the_existing_names() -> None:
    indexer: Indexer[Pod] = Indexer()
    with pytest.raises(IndexerError, match="no index 'node'; the indices are namespace"):
        indexer.by_index("node", "n1")


def fails(obj: Pod) -> list[str]:
    raise ValueError("no")


async def test_an_index_function_that_fails_leaves_the_indexer_unchanged() -> None:
    indexer: Indexer[Pod] = Indexer(
        {"node": field_index("spec.node_name"), "picky": lambda o: [] if o.name != "bad" else fails(o)}
    )
    store(indexer, pod("a", node="n"))
    with pytest.raises(IndexerError, match="index function 'picky' failed on Pod default/bad: ValueError"):
        store(indexer, pod("bad", node="n"))
    assert indexer.keys() == ("default/a",)
    assert indexer.index_keys("node", "n") == ("default/a",)
    store(indexer, pod("b", node="n"))
    with pytest.raises(IndexerError):
        indexer.add_indexers({"fails": fails})
    assert "fails" not in indexer._indices


async def test_a_replacement_keeps_the_stored_state_where_an_index_function_fails() -> None:
    broken: set[str] = set()
    indexer: Indexer[Pod] = Indexer(
        {"node": field_index("spec.node_name"), "picky": lambda o: fails(o) if o.resource_version in broken else []}
    )
    store(indexer, pod("a", 1, node="n"))
    broken |= {"2", "3"}
    staged, left_out = await indexer.stage([pod("a", 2, node="m"), pod("b", 3, node="n"), pod("c", 4, node="n")])
    assert [(obj.name, str(error)) for obj, error in left_out] == [
        ("a", "index function 'picky' failed on Pod default/a: ValueError"),
        ("b", "index function 'picky' failed on Pod default/b: ValueError"),
    ]
    indexer.swap(staged)
    assert sorted(f"{obj.name}@{obj.resource_version}" for obj in indexer.snapshot()) == ["a@1", "c@4"]
    assert sorted(indexer.index_keys("node", "n")) == ["default/a", "default/c"]
    assert indexer.index_values("node") == ("n",)


async def test_a_replacement_rebuilds_every_index_and_later_duplicates_win() -> None:
    indexer: Indexer[Pod] = Indexer({"node": field_index("spec.node_name")})
    store(indexer, pod("gone", node="n0"))
    await replace(indexer, pod("a", 1, node="n1"), pod("a", 2, node="n2"))
    assert indexer.index_values("node") == ("n2",)
    assert [obj.resource_version for obj in indexer.snapshot()] == ["2"]


async def test_an_index_added_while_a_replacement_is_staged_is_complete_after_the_swap() -> None:
    indexer: Indexer[Pod] = Indexer()
    staged, _ = await indexer.stage([pod("a", node="n1")])
    indexer.add_indexers({"node": field_index("spec.node_name")})
    indexer.swap(staged)
    assert indexer.index_keys("node", "n1") == ("default/a",)


async def test_an_object_that_a_late_index_fails_on_is_left_out_of_a_swap() -> None:
    def picky(obj: Pod) -> list[str]:
        if obj.resource_version == "2":
            raise ValueError("no")
        return [obj.resource_version]

    indexer: Indexer[Pod] = Indexer({"name": lambda obj: [obj.name]})
    old = pod("a", 1)
    store(indexer, old)
    staged, _ = await indexer.stage([pod("a", 2), pod("b", 2), pod("c", 3)])
    indexer.add_indexers({"picky": picky})
    _, failed = indexer.swap(staged)
    assert [(obj.name, error.index) for obj, error in failed] == [("a", "picky"), ("b", "picky")]
    assert sorted(indexer.keys()) == ["default/a", "default/c"]
    assert indexer.get("default/a") is old, "the stored state stays"
    assert indexer.index_keys("picky", "1") == ("default/a",)
    assert sorted(indexer.index_values("picky")) == ["1", "3"]
    assert sorted(indexer.index_values("name")) == ["a", "c"]
    assert set(indexer.index_keys("namespace", "default")) == {"default/a", "default/c"}


async def test_a_list_on_which_a_function_fails_holds_up_no_other_task(autojump_clock: trio.testing.MockClock) -> None:
    broken: set[str] = set()

    def moody(obj: Pod) -> list[str]:
        if obj.name in broken:
            raise ValueError
        return [obj.name]

    indexer: Indexer[Pod] = Indexer({"moody": moody})
    pods = [pod(f"p{number}", 1) for number in range(5_000)]
    store(indexer, *pods)
    broken |= {each.name for each in pods}
    turns, (_, failed) = await turns_during(indexer.stage(pod(each.name, 2) for each in pods))
    assert len(failed) == 5_000
    assert turns > 2 * 5, "about one after each thousand, while the objects are collected, indexed and kept"


async def test_an_object_stays_indexed_when_its_function_fails_on_it_later() -> None:
    broken: set[str] = set()

    def moody(obj: Pod) -> list[str]:
        if obj.name in broken:
            raise ValueError("no")
        return [obj.name]

    indexer: Indexer[Pod] = Indexer({"moody": moody})
    old = pod("a", 1)
    store(indexer, old, pod("b", 1), pod("c", 1))
    broken.update("a")
    staged, failed = await indexer.stage([old, pod("b", 2), pod("c", 2)])
    indexer.swap(staged)
    assert failed == []
    assert indexer.by_index("moody", "a") == (old,)
    broken.update("c")
    indexer.remove("default/c")
    assert indexer.index_values("moody") == ("b", "a")


@pytest.mark.parametrize("read_again", ["put", "remove"])
def test_an_index_function_that_returns_other_values_later_leaves_no_stale_keys(read_again: str) -> None:
    """Such as one that reads a label map of the program, which has changed since."""
    values = {"default/a": ["x", "y"], "default/b": ["x"]}
    indexer: Indexer[Pod] = Indexer({"odd": lambda obj: values[key_of(obj)]})
    store(indexer, pod("a", 1), pod("b", 2))
    values["default/a"] = ["y", "z"]
    if read_again == "put":
        store(indexer, pod("a", 3))
    else:
        indexer.remove("default/a")
    expected = {"x": ["b"]} if read_again == "remove" else {"x": ["b"], "y": ["a"], "z": ["a"]}
    found = {value: [obj.name for obj in indexer.by_index("odd", value)] for value in indexer.index_values("odd")}
    assert found == expected


def test_a_field_index_skips_absent_fields_and_has_each_item_of_a_list() -> None:
    by_node, by_finalizer = field_index("spec.node_name"), field_index("metadata.finalizers")
    assert by_node(pod("a")) == ()
    assert by_node(pod("a", node="n")) == ("n",)
    two = from_json(Pod, '{"metadata":{"name":"a","finalizers":["x","y"]}}')
    assert by_finalizer(two) == ("x", "y")
    assert field_index("metadata.generate_name")(from_json(Pod, '{"metadata":{"name":"a","generateName":""}}')) == ()


def test_a_label_or_annotation_is_the_value_of_its_index() -> None:
    indexer: Indexer[Pod] = Indexer({"app": label_index("app"), "owner": annotation_index("Example.com/owner")})
    metadata = ObjectMeta(name="c", namespace="default", annotations={"Example.com/owner": "a team"})
    store(indexer, labelled("a", app="web"), labelled("b", app=""), Pod(metadata=metadata))
    assert indexer.index_keys("app", "web") == ("default/a",)
    assert indexer.index_keys("app", "") == ("default/b",)
    assert indexer.index_values("app") == ("web", "")
    assert indexer.index_keys("owner", "a team") == ("default/c",)
    assert indexer.index_values("owner") == ("a team",)
    # Several users of an informer can add the same index.
    assert indexer.add_indexers({"app": label_index("app")}) == []
    with pytest.raises(IndexerError):
        indexer.add_indexers({"app": label_index("tier")})
    with pytest.raises(IndexerError):
        indexer.add_indexers({"app": annotation_index("app")})


def test_a_label_index_needs_the_key_of_a_label() -> None:
    with pytest.raises(SelectorError, match="app=web"):
        label_index("app=web")


@pytest.mark.parametrize("result", ["node-1", [1], [["n"]], {None: 1}], ids=repr)
def test_an_index_function_must_return_strings_in_a_list_or_tuple(result: object) -> None:
    """A string would be indexed under each of its letters, and would not be found."""
    indexer: Indexer[Pod] = Indexer({"node": lambda obj: result})  # type: ignore[arg-type,return-value]  # invalid on purpose
    with pytest.raises(IndexerError, match="index function 'node' must return strings in a list or tuple, not "):
        store(indexer, pod("a"))
    assert len(indexer) == 0


NODES = st.sampled_from(["", "n1", "n2"])


@given(st.lists(st.tuples(st.sampled_from("abc"), NODES | st.none()), max_size=30))
def test_indices_always_equal_a_scan_of_the_store(steps: list[tuple[str, str | None]]) -> None:
    indexer: Indexer[Pod] = Indexer({"node": field_index("spec.node_name")})
    model: dict[str, str] = {}
    for name, node in steps:
        if node is None:
            indexer.remove(f"default/{name}")
            model.pop(name, None)
        else:
            store(indexer, pod(name, node=node))
            model[name] = node
    for value in ("n1", "n2"):
        assert set(indexer.index_keys("node", value)) == {
            f"default/{name}" for name, node in model.items() if node == value
        }
    assert set(indexer.index_values("node")) == set(model.values()) - {""}


SIZED = st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.booleans())


@given(st.lists(st.tuples(st.sampled_from(["put", "remove", "swap", "late"]), st.lists(SIZED, max_size=4)), max_size=8))
async def test_the_size_of_a_store_is_the_sum_of_its_objects(
    steps: list[tuple[str, list[tuple[str, int, bool]]]],
) -> None:
    """Also where an index function fails, so that an earlier state stays or an object is left out."""

    def sized(name: str, size: int, is_bad: bool) -> Pod:
        data = f'{{"metadata":{{"name":"{name}","namespace":"default"}},"bad":{int(is_bad)},"x":"{"x" * size}"}}'
        return from_json(Pod, data)

    def picky(obj: Pod) -> list[str]:
        return fails(obj) if b'"bad":1' in bytes_of(obj) else []

    indexer: Indexer[Pod] = Indexer({"picky": picky})
    for number, (step, states) in enumerate(steps):
        if step in ("swap", "late"):
            staged, _ = await indexer.stage([sized(*state) for state in states])
            if step == "late":
                late = lambda obj: fails(obj) if b"xxx" in bytes_of(obj) else []  # noqa: E731
                with suppress(IndexerError):
                    indexer.add_indexers({f"late-{number}": late})
            indexer.swap(staged)
        for state in states:
            if step == "put":
                with suppress(IndexerError):
                    store(indexer, sized(*state))
            elif step == "remove":
                indexer.remove(f"default/{state[0]}")
        assert indexer.encoded_bytes == sum(len(bytes_of(obj)) for obj in indexer.snapshot())


# --- listers ---


def lister(*pods: Pod, synced: bool = True) -> Lister[Pod]:
    indexer: Indexer[Pod] = Indexer({"node": field_index("spec.node_name")})
    store(indexer, *pods)
    return Lister._create("Pod", indexer, lambda: synced)


def test_a_lister_reads_by_name_key_namespace_selector_and_index() -> None:
    """client-go: TestListAll"""
    web, db = labelled("web", app="web"), labelled("db", app="db")
    far = pod("far", namespace="other", node="n1")
    pods = lister(web, db, far)
    assert pods.get("web", namespace="default") is web
    assert pods.get("web", namespace="other") is None
    assert pods["default/db"] is db
    assert "default/db" in pods
    assert "default/nobody" not in pods
    assert "" not in pods
    assert pods.list() == (web, db, far)
    assert pods.list(namespace="other") == (far,)
    assert pods.list(label_selector="app in (web, cache)") == (web,)
    assert pods.list(label_selector={"app": "db"}) == (db,)
    assert pods.list(label_selector="") == (web, db, far)
    assert pods.list(label_selector="!app", namespace="default") == ()
    assert pods.by_index("node", "n1") == (far,)
    assert pods.index_keys("node", "n1") == ("other/far",)
    assert pods.index_values("node") == ("n1",)
    assert (len(pods), list(pods)) == (3, [web, db, far])


READS: list[Callable[[Lister[Pod]], object]] = [
    len,
    list,
    lambda pods: pods.get("x"),
    lambda pods: pods["x"],
    lambda pods: "x" in pods,
    lambda pods: pods.list(),
    lambda pods: pods.by_index("node", "x"),
    lambda pods: pods.index_keys("node", "x"),
    lambda pods: pods.index_values("node"),
]


@pytest.mark.parametrize("read", READS)
def test_a_lister_raises_from_every_method_before_the_cache_has_synced(read: Callable[[Lister[Pod]], object]) -> None:
    pods = lister(synced=False)
    with pytest.raises(CacheNotSyncedError, match="the cache of Pod has not synced yet; start its factory"):
        read(pods)
    assert "not synced" in repr(pods)

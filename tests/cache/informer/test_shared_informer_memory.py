"""What a running informer keeps in memory of lists and events that it has handled."""

from __future__ import annotations

import gc

import pytest
import trio
import trio.testing

from tests.cache.reflector.test_reflector_bad_input import CONFIG, END, JSON, BadServer, a_list, a_pod, event
from trioformer.cache import ApiListWatch, ReflectorOptions, SharedInformer
from trioformer.client import Undecodable, open_client
from trioformer.models.core_v1 import Pod

NAMES = [f"kept-{number}" for number in range(20)]
BAD = f"{NAMES[-1]}-bad"


def fails_on_bad(obj: Pod) -> Pod:
    if obj.name == BAD:
        raise KeyError("secret text")
    return obj


def reads_node(obj: Pod) -> Pod:
    assert obj.spec.node_name != "never"
    return obj


def bad_names(obj: Pod) -> list[str]:
    return [fails_on_bad(obj).name]


CAUSES = {
    "none": ({}, []),
    "no object": ({}, [a_pod(BAD, "2") | {"metadata": {"name": BAD, "namespace": "default", "uid": 7}}]),
    "transform": ({"transform": fails_on_bad}, [a_pod(BAD, "2")]),
    "transform that decodes": ({"transform": reads_node}, [a_pod(BAD, "2", spec={"nodeName": 7})]),
    "index": ({"indexers": {"x": bad_names}}, [a_pod(BAD, "2")]),
    "index that decodes": (
        {"indexers": {"x": lambda obj: [str(reads_node(obj).name)]}},
        [a_pod(BAD, "2", spec={"nodeName": 7})],
    ),
}


def alive() -> list[str]:
    """Names of the first objects that are in memory; weak references to objects of the models are not possible."""
    gc.collect()
    return [obj.name for obj in gc.get_objects() if type(obj) is Pod and obj.name.startswith(NAMES[0][:5])]


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("watch_list", [False, True], ids=["list", "watch-list"])
async def test_nothing_of_the_first_list_is_kept_but_what_is_in_the_cache(
    watch_list: bool, cause: str, autojump_clock: trio.testing.MockClock
) -> None:
    arguments, bad = CAUSES[cause]
    first: list[JSON] = [*(a_pod(name, "1") for name in NAMES), *bad]
    deletions = b"".join(event("DELETED", a_pod(name, "11")) for name in (*NAMES, BAD))
    # What is received last may be kept until something else is received.
    changes = [1.0, deletions, 1.0, event("ADDED", a_pod("other", "12")), None]
    if watch_list:
        initial = b"".join(event("ADDED", obj) for obj in first) + event("BOOKMARK", END)
        server = BadServer([a_list()], [[initial, *changes]])
    else:
        server = BadServer([a_list(*first)], [changes])
    reported: list[Undecodable] = []
    options = ReflectorOptions(watch_list=watch_list, undecodable_handler=reported.append)
    async with open_client(CONFIG, http_transport=server) as client, trio.open_nursery() as nursery:
        informer = SharedInformer(ApiListWatch(client.api(Pod)), options=options, **arguments)  # type: ignore[arg-type]  # a table
        await nursery.start(informer.run)
        assert sorted(set(alive()) - {BAD}) == sorted(NAMES)
        assert len(informer.lister.quarantined()) == len(bad)
        await trio.sleep(5)
        assert [obj.name for obj in informer.lister] == ["other"]
        assert alive() == []
        nursery.cancel_scope.cancel()
    assert len(server.asked) == (1 if watch_list else 2)
    assert all(each.error.__traceback__ is None for each in reported)

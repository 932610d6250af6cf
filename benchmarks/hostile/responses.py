"""What a server answers: lists, watches, pages, heads, errors and discovery."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from trioformer import Client, ClusterConfig, ResourceEventHandler, SharedInformerFactory, open_client
from trioformer.client import ClientOptions
from trioformer.models import from_dict, json_equal, to_dict, unstructured_kind
from trioformer.models.core_v1 import ConfigMap

from .measuring import Measured, answer_of, bomb, describe

INFORMER_PATIENCE = 3.0
MIB = 1024**2


@asynccontextmanager
async def client_of(name: str, *, compression: bool = False) -> AsyncGenerator[Client, None]:
    """Start the server, and open a client of it."""
    command = [sys.executable, "-m", "hostile.server", name]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        url = (await process.stdout.receive_some()).decode().strip()
        async with open_client(
            ClusterConfig(server=url, source="benchmark"), options=ClientOptions(compression=compression or None)
        ) as client:
            yield client
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()


async def _list(client: Client) -> object:
    return await client.api(ConfigMap, namespace="default").list()


async def _watch(client: Client) -> object:
    api = client.api(ConfigMap, namespace="default")
    count = 0
    async with api.watch(resource_version="1") as stream:
        async for _ in stream:
            count += 1
    return count


async def _get(client: Client) -> object:
    found = await client.api(ConfigMap, namespace="default").get("c1")
    return to_dict(found)


async def _create(client: Client) -> object:
    widget = unstructured_kind("e.io/v1", "Widget", plural="widgets")
    return await client.api(widget, namespace="default").create(from_dict(widget, {"metadata": {"name": "x"}}))


class _Reader(ResourceEventHandler[ConfigMap]):
    """A handler that reads all that a tenant wrote."""

    async def on_add(self, obj: ConfigMap, *, is_initial: bool) -> None:
        to_dict(obj)

    async def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        json_equal(old, new)
        to_dict(new)


async def _informer(client: Client) -> str:
    """Run an informer for a while, and return what its state says."""
    factory = SharedInformerFactory(client)
    informer = factory.informer(ConfigMap)
    informer.add_event_handler(_Reader())
    said = "not started"
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(factory.run)
            deadline = trio.current_time() + INFORMER_PATIENCE
            while trio.current_time() < deadline:
                await trio.sleep(0.05)
                state = informer.state
                if state.error is not None:
                    said = f"{state.phase.name}, {describe(state.error)}"
                elif state.quarantined:
                    said = f"{state.phase.name}, {state.quarantined} in quarantine"
                elif not said.partition(",")[2]:
                    said = state.phase.name
            nursery.cancel_scope.cancel()
    except Exception as exc:  # noqa: BLE001  # it is what is asked for
        said = f"ended by {describe(exc)}"
    return said


def _add(
    name: str,
    group: str,
    what: str,
    call: Callable[[Client], Awaitable[object]] = _list,
    *,
    with_informer: bool = False,
    of: str | None = None,
    compression: bool = False,
    **options: Any,
) -> None:
    """Add a bomb: a call of a client, and then an informer of the same server, which may be that of another bomb."""

    @bomb(name.replace("_", "-"), group, what, **options)
    async def run(measured: Measured) -> str:
        async with client_of(of or name, compression=compression) as client:
            await client.version()  # the first connection, for which HTTP libraries are imported, is not the bomb's
            with measured:
                answer = await answer_of(lambda: call(client))
                if with_informer:
                    answer += f" | informer: {await _informer(client)}"
            return answer


_GROUP = "Compression"
_add("gzip_items", _GROUP, "gzip, 30 KB: 30 MB of `{},`", with_informer=True)
_add("gzip_spaces", _GROUP, "gzip, 0.39 MB: 400 MB of spaces", with_informer=True)
_add("gzip_twice", _GROUP, "gzip of gzip, 2 KB: 500 MB")
_add("deflate", _GROUP, "deflate, 0.39 MB: 400 MB of spaces")
_add("brotli", _GROUP, "`Content-Encoding: br`")
_add("zstd", _GROUP, "`Content-Encoding: zstd`")
_add("gzip_lie", _GROUP, "`Content-Encoding: gzip`, and then plain JSON")
_add("unsaid_gzip", _GROUP, "gzip without `Content-Encoding`")
_add("gzip_error", _GROUP, "an error of 400 MB, gzip", _get)
_asked: dict[str, Any] = {"compression": True, "with_informer": True}
_add("asked_gzip_items", _GROUP, "gzip on request: 30 MB of `{},`", of="gzip_items", most_memory=256, **_asked)
_add("asked_gzip_spaces", _GROUP, "gzip on request: 400 MB of spaces", of="gzip_spaces", **_asked)
_add("asked_gzip_error", _GROUP, "gzip on request: an error of 400 MB", _get, of="gzip_error", **_asked)
_add("gzip_members", _GROUP, "gzip on request: empty members without end", **_asked)

_GROUP = "Lists"
for _levels in (1_000, 10_000, 100_000):
    _add(f"nested_{_levels}", _GROUP, f"items nested {_levels:,} deep", with_informer=True)
_add("nested_items", _GROUP, "100 items nested 100,000 deep", with_informer=True, most_memory=64)
_add("unclosed_brackets", _GROUP, "30 MB of `[`", with_informer=True, most_memory=64)
_add("long_item", _GROUP, "one item of 100 MB", with_informer=True, most_memory=64)
_add("wide_item", _GROUP, "one item with 6,000,000 members", with_informer=True, most_memory=64)
_add("wide_item_below", _GROUP, "one item of 15 MB, with 1,300,000 members", most_memory=128)
_add("deceptive_items_below", _GROUP, "15 MB of such text in one item", most_memory=128)
_add("long_list_of_undecodable", _GROUP, "300,000 items without metadata", with_informer=True, most_memory=128)
_add("flood_of_undecodable", _GROUP, "60 MB of `{},`", with_informer=True, most_memory=256)
_add("long_names", _GROUP, "20 objects with names and namespaces of 1 MB", with_informer=True, most_memory=512)
_add("many_labels", _GROUP, "an object with 1,000,000 labels (13 MB)", most_memory=128)
_add("many_items", _GROUP, "1,000,000 tiny items (74 MB)", most_memory=1_000, counts_gc=False)
_add("deceptive_items", _GROUP, "25 MB of text like the beginnings of items in one item", most_memory=128)
_add("endless_chunk_extension", _GROUP, "a chunk extension without end")
_add("endless_page_prefix", _GROUP, "a list whose `kind` has no end")

_GROUP = "Pages"
_add("long_continue", _GROUP, "`continue` of 5 MB")

_GROUP = "Watches"
_add("frame_without_end", _GROUP, "a frame without end", _watch, with_informer=True, most_memory=64)
_add("blank_lines_without_end", _GROUP, "blank lines without end", _watch, with_informer=True, may_last=True)
_add("nested_frames", _GROUP, "objects nested up to 1,000,000 deep", _watch, with_informer=True, most_memory=64)
_add("nested_15_mb", _GROUP, "an object nested 7,500,000 deep", _watch, with_informer=True, most_memory=128)
_add("long_frames", _GROUP, "5 objects of 15 MB", _watch, with_informer=True, most_memory=128)
_add("tiny_frames", _GROUP, "300,000 events", _watch, with_informer=True, most_memory=64)
_add("unknown_frames", _GROUP, "200,000 events of an unknown type", _watch, with_informer=True)
_add("error_frame", _GROUP, "an ERROR with a message of 10 MB", _watch, with_informer=True, most_memory=128)
_add("long_version_frame", _GROUP, "a resourceVersion of 10,000 digits", _watch, with_informer=True)

_GROUP = "Heads"
_add("long_head", _GROUP, "a head of 64 KB", with_informer=True)
_add("many_headers", _GROUP, "10,000 headers", with_informer=True)
_add("short_headers", _GROUP, "12,000 headers of 5 bytes", with_informer=True)
_add("endless_head", _GROUP, "headers without end")
_add("endless_status_line", _GROUP, "a status line without end")

_GROUP = "Errors and discovery"
_add("endless_error", _GROUP, "an error without end", _get)
_add("html_error", _GROUP, "an HTML error of 100 MB", _get, with_informer=True)
_add("html_success", _GROUP, "HTTP 200 with HTML of 30 MB", _get, with_informer=True, most_memory=64)
_add("long_status", _GROUP, "a Status of 300,000 characters, with terminal escapes", _get, with_informer=True)
_add("many_causes", _GROUP, "a Status with 1,000,000 causes (78 MB)", _create)
_add("nested_status", _GROUP, "a Status nested 100,000 deep", _get, with_informer=True)
_add("huge_retry_after", _GROUP, "`Retry-After` of 10,000 digits", _get, with_informer=True)
_add("huge_numbers", _GROUP, "`code` of 10,000 digits, `retryAfterSeconds: 1e400`", _get, with_informer=True)
_add("long_versions", _GROUP, "resourceVersions of 10,000 digits", with_informer=True)
_add("long_object", _GROUP, "an object of 400 MB", _get, most_memory=1_000)
_add("nested_object", _GROUP, "an object nested 100,000 deep", _get)
_add("long_discovery", _GROUP, "discovery of 100 MB", lambda client: client.discover("v1", "Widget"), most_memory=64)
_add(
    "many_resources",
    _GROUP,
    "discovery with 150,000 kinds (13 MB)",
    lambda client: client.discover("v1", "Widget"),
    most_memory=128,
)
_add("nested_discovery", _GROUP, "discovery nested 100,000 deep", lambda client: client.discover("v1", "Widget"))

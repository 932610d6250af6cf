"""The barest loop that httpx, trio and msgspec allow: what any Python client on them must at least spend.

A list is read whole, split into raw items, and the items' bytes are kept in a dict by namespace and name.
A watch is split at line ends; each event is decoded into its type and raw object, then the object's metadata; the raw
object goes into the dict.  No errors, no queue, no index, no listeners.
"""

from __future__ import annotations

import base64
import math
import ssl
import time
from pathlib import Path

import httpx
import measure
import msgspec
import trio
import yaml
from measure import Meter


class Metadata(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    annotations: msgspec.Raw = msgspec.Raw(b"")


class Object(msgspec.Struct, gc=False):
    metadata: Metadata


class Listing(msgspec.Struct, gc=False):
    metadata: Metadata
    items: list[msgspec.Raw]


class Event(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


decode_list = msgspec.json.Decoder(Listing).decode
decode_event = msgspec.json.Decoder(Event).decode
decode_object = msgspec.json.Decoder(Object).decode


def client_of(kubeconfig: str) -> httpx.AsyncClient:
    read = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    verify: ssl.SSLContext | bool = False
    if "certificate-authority" in cluster:
        verify = ssl.create_default_context(cafile=cluster["certificate-authority"])
    elif "certificate-authority-data" in cluster:
        verify = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        pair = Path(kubeconfig).with_name("pair.pem")
        pair.write_bytes(
            base64.b64decode(user["client-certificate-data"]) + b"\n" + base64.b64decode(user["client-key-data"])
        )
        verify.load_cert_chain(pair)
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    return httpx.AsyncClient(base_url=cluster["server"], verify=verify, headers=headers, timeout=None, trust_env=False)


async def read_list(client: httpx.AsyncClient, store: dict[str, bytes | msgspec.Raw]) -> str:
    async with client.stream("GET", "/api/v1/pods", params={"resourceVersion": "0"}) as response:
        pieces = [piece async for piece in response.aiter_raw()]
    listing = decode_list(b"".join(pieces))
    pieces.clear()
    for item in listing.items:
        raw = bytes(item)
        metadata = decode_object(raw).metadata
        store[f"{metadata.namespace}/{metadata.name}"] = raw
    return listing.metadata.resourceVersion


async def read_watch(
    client: httpx.AsyncClient,
    version: str,
    store: dict[str, bytes | msgspec.Raw],
    count: int,
    seen: list[tuple[int, int]] | None,
) -> None:
    params = {"watch": "1", "resourceVersion": version}
    buffer = b""
    async with client.stream("GET", "/api/v1/pods", params=params) as response:
        async for piece in response.aiter_raw():
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                event = decode_event(line)
                metadata = decode_object(event.object).metadata
                store[f"{metadata.namespace}/{metadata.name}"] = event.object
                count -= 1
                if seen is not None:
                    sent = msgspec.json.decode(metadata.annotations)[measure.SENT]
                    seen.append((int(sent), time.time_ns()))
            if count <= 0:
                return


async def main() -> None:
    options = measure.options()
    store: dict[str, bytes | msgspec.Raw] = {}
    async with client_of(options.kubeconfig) as client:
        meter = Meter()
        version = await read_list(client, store)
        result: dict[str, object] = {"objects": len(store), **meter.read()}
        if options.workload == "sync":
            measure.finish(result)
        seen: list[tuple[int, int]] | None = [] if options.workload == "latency" else None
        measure.ready()
        meter = Meter()
        await read_watch(client, version, store, options.events or math.inf, seen)  # type: ignore[arg-type]
        result = {"events": options.events, **meter.read()}
        if seen is not None:
            result |= measure.latencies(seen)
        measure.finish(result)


if __name__ == "__main__":
    trio.run(main)

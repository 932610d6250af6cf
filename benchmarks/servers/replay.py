"""A server that only plays back: lists of pods and storms of watch events, faster than any client reads them.

::

    python benchmarks/servers/replay.py --pods 10000 --events 50000 [--size small] [--tls]

Says ``{"url": …, "kubeconfig": …}`` when it is ready.
``GET /api/v1/pods`` answers with the list, whole or in pages, as kube-apiserver does: ``limit`` is ignored for
resourceVersion 0, which the watch cache serves, and chunks are not compressed.
A watch is silent until ``go`` comes on standard input; then it sends its events (MODIFIED, one pod after the other,
round and round) as fast as they are read, each in an HTTP chunk and a TLS record of its own: so a real server flushes.
With ``sendInitialEvents=true`` the watch begins with the list, as ADDED events and a bookmark.
A ``shardSelector`` selects pods by uid or namespace, of the list and of the storm, as kube-apiserver 1.36 does.
Both are in protobuf for a client that prefers it, otherwise in JSON.

``reset PODS EVENTS RATE`` says how much of it the next client is sent, and how many events a second; 0 sets no rate.
With a rate, each event is of the pod 7919 after the one before, so that a client's order of objects is not theirs.

The objects are encoded before; what is left are the digits of the resourceVersion and the frames of events.
A thread for each connection hands the kernel whole vectors of pieces.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

import pods

from trioformer.models._protobuf import _transcode
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._tables import WireType
from trioformer.models._protobuf._wire import tagged, varint_of
from trioformer.sharding._ranges import fnv1a

Connection: TypeAlias = "socket.socket | ssl.SSLSocket"

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC, END = b"k8s\0", b'\x1a\0"\0'
EVENTS_AT_ONCE = 300  # three pieces each; the kernel takes 1024
ITEMS_AT_ONCE = 200  # four pieces each
STEP = 7919  # a prime
SELECTOR = re.compile(r"shardRange\(object\.metadata\.(uid|namespace), '(0x[0-9a-f]+)', '(0x[0-9a-f]+)'\)")

CORE = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [
        {
            "name": "pods",
            "singularName": "pod",
            "namespaced": True,
            "kind": "Pod",
            "shortNames": ["po"],
            "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
        }
    ],
}
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"}
DOCUMENTS: dict[str, object] = {
    "/version": VERSION,
    "/version/": VERSION,
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": CORE,
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    WHO: {
        "kind": "SelfSubjectReview",
        "apiVersion": "authentication.k8s.io/v1",
        "status": {"userInfo": {"username": "replay"}},
    },
    "/apis/": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
}


Part: TypeAlias = "tuple[bytes, bytes, bytes]"
"""What comes before a resourceVersion, its place, and what comes after."""


class Pods:
    """The pods in JSON."""

    media_type = watch_type = "application/json"
    separator = b","

    def __init__(self, size: str, count: int) -> None:
        encoded = pods.encoded_pods(size, count, self.item)
        self.items: list[Part] = [item.partition(pods.VERSION) for item in encoded]  # so a list needs no copies

    @staticmethod
    def item(obj: dict[str, Any]) -> bytes:
        """Encode an object as an item of a list."""
        return pods.as_json(obj)

    @staticmethod
    def event(type_: str, item: bytes) -> bytes:
        """Make a watch event of an item."""
        return b'{"type":"%s","object":{"kind":"Pod","apiVersion":"v1",%s}\n' % (type_.encode(), item[1:])

    @staticmethod
    def around_items(metadata: dict[str, object], size: int) -> tuple[bytes, bytes]:
        """What comes before and after the items of a list, which have ``size`` bytes."""
        opening = b'{"kind":"PodList","apiVersion":"v1","metadata":' + json.dumps(metadata).encode() + b',"items":['
        return opening, b"]}\n"


class ProtobufPods(Pods):
    """The same pods in protobuf."""

    media_type = PROTOBUF
    watch_type = f"{PROTOBUF};stream=watch"
    separator = b""

    @staticmethod
    def item(obj: dict[str, Any]) -> bytes:
        return _transcode.item_of(obj, wire_type("Pod"))

    @staticmethod
    def event(type_: str, item: bytes) -> bytes:
        envelope = MAGIC + _kind("Pod") + item + END  # an item has the tag that an object has in its envelope
        frame = _transcode.event_of(type_, envelope)
        return len(frame).to_bytes(4, "big") + frame

    @staticmethod
    def around_items(metadata: dict[str, object], size: int) -> tuple[bytes, bytes]:
        meta = tagged(1, to_message(metadata, wire_type("ListMeta")))
        return MAGIC + _kind("PodList") + b"\x12" + varint_of(len(meta) + size) + meta, END


def wire_type(kind: str) -> WireType:
    found = _transcode.find_wire_type("v1", kind)
    assert found is not None
    return found


def _kind(kind: str) -> bytes:
    return tagged(1, tagged(1, b"v1") + tagged(2, kind.encode()))


class Replay:
    """What is played back.

    Args:
        size: ``large`` or ``small`` pods.
        count: How many pods.
        events: How many events a storm has.
        ignores_shards: Whether to send all pods to each client, as kube-apiserver does without the feature gate.
    """

    def __init__(self, size: str, count: int, events: int, *, ignores_shards: bool = False) -> None:
        self.events, self.ignores_shards = events, ignores_shards
        self.listed = count
        self.rate = 0
        self.go = threading.Event()
        self._as_json = Pods(size, count)
        self._as_protobuf = ProtobufPods(size, count)

    def encoding(self, accept: str) -> Pods:
        """The encoding that a client prefers."""
        return self._as_protobuf if accept.startswith(PROTOBUF) else self._as_json

    def selector_in(self, query: Mapping[str, str]) -> str:
        """The ``shardSelector`` of a request, unless it is ignored."""
        return "" if self.ignores_shards else query.get("shardSelector", "")

    def numbers_of(self, selector: str) -> Sequence[int]:
        """The numbers of the pods that a ``shardSelector`` selects, or of all."""
        found = SELECTOR.findall(selector)
        if not found:
            return range(self.listed)
        text = pods.uid_of if found[0][0] == "uid" else pods.namespace_of
        ranges = [(int(begin, 16), int(end, 16)) for _, begin, end in found]
        hashes = ((number, fnv1a(text(number))) for number in range(self.listed))
        return [number for number, value in hashes if any(begin <= value < end for begin, end in ranges)]

    def list_pieces(self, encoding: Pods, begin: int, end: int, selector: str = "") -> Iterator[list[bytes]]:
        """The pieces of a list's body, in vectors; the first is the whole body's length."""
        selected = self.numbers_of(selector)
        last = len(selected)
        metadata: dict[str, object] = {"resourceVersion": pods.version(self.listed).decode()}
        if selector:
            metadata["shardInfo"] = {"selector": selector}
        if end < last:
            metadata |= {"continue": f"from-{end}", "remainingItemCount": last - end}
        items = [encoding.items[number] for number in selected[begin:end]]
        size = sum(len(piece) for item in items for piece in item) + max(0, len(items) - 1) * len(encoding.separator)
        opening, closing = encoding.around_items(metadata, size)
        yield [head_of(encoding.media_type, b"Content-Length: %d" % (len(opening) + size + len(closing))) + opening]
        for start in range(0, len(items), ITEMS_AT_ONCE):
            vector: list[bytes] = []
            for number, (before, _, after) in enumerate(items[start : start + ITEMS_AT_ONCE], begin + start + 1):
                vector += (before, pods.version(number), after, encoding.separator)
            if start + ITEMS_AT_ONCE >= len(items):
                vector.pop()
            yield vector
        yield [closing]

    def event_chunks(self, encoding: Pods, type_: str, selector: str = "") -> Iterator[Part]:
        """An event of each pod, in a chunk."""
        for number in self.numbers_of(selector):
            yield chunk(encoding.event(type_, b"".join(encoding.items[number]))).partition(pods.VERSION)


def in_vectors(events: Iterable[Part], first: int, at_once: int = EVENTS_AT_ONCE) -> Iterator[list[bytes]]:
    """The pieces of events, in vectors; ``first`` is the number of the first resourceVersion."""
    numbered = enumerate(events, first)
    while some := list(itertools.islice(numbered, at_once)):
        yield [piece for number, (before, _, after) in some for piece in (before, pods.version(number), after)]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def head_of(media_type: str, header: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s\r\n\r\n" % (media_type.encode(), header)


def send_all(connection: Connection, vector: list[bytes], *, group: int) -> None:
    """Send the pieces; over TLS ``group`` of them make a record."""
    if isinstance(connection, ssl.SSLSocket):
        for start in range(0, len(vector), group):
            connection.sendall(b"".join(vector[start : start + group]))
        return
    sent = connection.sendmsg(vector)
    if sent < sum(map(len, vector)):
        connection.sendall(memoryview(b"".join(vector))[sent:])


def requests_of(connection: Connection) -> Iterator[tuple[str, str]]:
    """The targets and accepted media types of the requests that come; their bodies are read and forgotten."""
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            more = connection.recv(65536)
            if not more:
                return
            buffer += more
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        found = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        length = int(found[1]) if found else 0
        while len(buffer) < length:
            more = connection.recv(65536)
            if not more:
                return
            buffer += more
        buffer = buffer[length:]
        accept = re.search(rb"\r\naccept: *([^\r]+)", head, re.IGNORECASE)
        yield head.split(b" ", 2)[1].decode(), accept[1].decode() if accept else ""


def send_document(connection: Connection, document: object, code: str = "200 OK") -> None:
    body = json.dumps(document).encode()
    connection.sendall(
        b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (code.encode(), len(body), body)
    )


def send_refusal(connection: Connection, code: int, reason: str, message: str) -> None:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    send_document(connection, status, f"{code} {reason}")


def play_list(connection: Connection, replay: Replay, query: dict[str, str], accept: str) -> None:
    limit = int(query.get("limit") or 0)
    begin = int(query.get("continue", "from-0").removeprefix("from-"))
    is_whole = query.get("resourceVersion") == "0" or not limit
    end = replay.listed if is_whole else min(begin + limit, replay.listed)
    for vector in replay.list_pieces(replay.encoding(accept), begin, end, replay.selector_in(query)):
        send_all(connection, vector, group=16)


def play_watch(connection: Connection, replay: Replay, query: dict[str, str], accept: str) -> None:
    encoding, selector = replay.encoding(accept), replay.selector_in(query)
    connection.sendall(head_of(encoding.watch_type, b"Transfer-Encoding: chunked"))
    if query.get("sendInitialEvents") == "true":
        for vector in in_vectors(replay.event_chunks(encoding, "ADDED", selector), 1):
            send_all(connection, vector, group=3)
        version = pods.version(replay.listed).decode()
        end = {"metadata": {"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}}}
        connection.sendall(chunk(encoding.event("BOOKMARK", encoding.item(end))))
    chunks = list(replay.event_chunks(encoding, "MODIFIED", selector)) if replay.events else []
    events = replay.events * len(chunks) // replay.listed  # the share of a selector
    replay.go.wait()
    if replay.rate:
        chunks = [chunks[number * STEP % len(chunks)] for number in range(len(chunks))]
    storm = itertools.cycle(chunks)
    began, rate = time.perf_counter(), replay.rate
    vectors = in_vectors(itertools.islice(storm, events), len(encoding.items) + 1, 1 if rate else EVENTS_AT_ONCE)
    for number, vector in enumerate(vectors):
        if rate:
            time.sleep(max(0.0, began + number / rate - time.perf_counter()))
        send_all(connection, vector, group=3)
    connection.recv(1)  # until the client goes


def serve(connection: Connection, replay: Replay) -> None:
    """Answer what comes on one connection, until the client closes it."""
    try:
        if isinstance(connection, ssl.SSLSocket):
            connection.do_handshake()
        for target, accept in requests_of(connection):
            url = urlsplit(target)
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            if url.path == "/api/v1/pods":
                if query.get("watch", "").lower() in ("1", "true"):
                    play_watch(connection, replay, query, accept)
                    return
                play_list(connection, replay, query, accept)
            elif url.path in DOCUMENTS:
                send_document(connection, DOCUMENTS[url.path])
            else:
                send_refusal(connection, 404, "NotFound", f"there is no {url.path}")
    except OSError:
        pass  # the client has gone
    finally:
        connection.close()


def server_tls(directory: Path) -> ssl.SSLContext:
    """Make a certificate for the loopback address; the authority's goes to ``ca.crt``."""
    import trustme  # noqa: PLC0415  # only with --tls

    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def write_kubeconfig(directory: Path, url: str) -> Path:
    cluster: dict[str, str] = {"server": url}
    user: dict[str, str] = {}
    if url.startswith("https:"):
        cluster["certificate-authority"] = str(directory / "ca.crt")
        user["token"] = "replay"  # nobody checks it
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "replay", "cluster": cluster}],
        "users": [{"name": "replay", "user": user}],
        "contexts": [{"name": "replay", "context": {"cluster": "replay", "user": "replay"}}],
        "current-context": "replay",
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def accept(listener: socket.socket, tls: ssl.SSLContext | None, replay: Replay) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            connection = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=serve, args=(connection, replay), daemon=True).start()


def main() -> None:
    parser = argparse.ArgumentParser(description="Play back lists and storms of watch events.")
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--size", choices=("large", "small"), default="large")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--ignore-shards", action="store_true")
    options = parser.parse_args()
    replay = Replay(options.size, options.pods, options.events, ignores_shards=options.ignore_shards)
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        directory = Path(name)
        tls = server_tls(directory) if options.tls else None
        url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=accept, args=(listener, tls, replay), daemon=True).start()
        said = {"url": url, "kubeconfig": str(write_kubeconfig(directory, url))}
        print(json.dumps(said), flush=True)
        for line in sys.stdin:
            command, *numbers = line.split()
            if command == "reset":
                replay.go.clear()
                replay.listed, replay.events, replay.rate = map(int, numbers)
            elif command == "go":
                replay.go.set()


if __name__ == "__main__":
    main()

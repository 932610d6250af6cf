"""A server that only plays back: lists of pods and storms of watch events, faster than any client reads them.

::

    python benchmarks/servers/replay.py --pods 10000 --events 50000 [--size small] [--tls]

Says ``{"url": …, "kubeconfig": …}`` when it is ready.
``GET /api/v1/pods`` answers with the list, whole or in pages, as kube-apiserver does: ``limit`` is ignored for
resourceVersion 0, which the watch cache serves, and chunks are not compressed.
A watch is silent until ``go`` comes on standard input; then it sends its events (MODIFIED, one pod after the other,
round and round) as fast as they are read, each in an HTTP chunk and a TLS record of its own: so a real server flushes.
``sendInitialEvents`` is refused as by a server without watch-list, and client-go lists instead.

``reset PODS EVENTS`` says how much of it the next client is sent.

Everything that is sent is made before, but for the ten digits of a resourceVersion; a thread for each connection hands
the kernel whole vectors of ready pieces.
"""

from __future__ import annotations

import argparse
import functools
import json
import re
import socket
import ssl
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import pods

from trioformer.models._protobuf import _transcode
from trioformer.models._protobuf._encode import to_message
from trioformer.models._protobuf._heads import envelope_of
from trioformer.models._protobuf._tables import find_type
from trioformer.models._protobuf._wire import tagged, varint_of

Connection: TypeAlias = "socket.socket | ssl.SSLSocket"

PROTOBUF = "application/vnd.kubernetes.protobuf"
MARK = b"9876543210"
"""The place of a resourceVersion."""
EVENT = b'{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1",'
EVENTS_AT_ONCE = 300  # three pieces each; the kernel takes 1024
ITEMS_AT_ONCE = 200

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


Part: TypeAlias = "tuple[bytes, bytes]"
"""A pod's bytes before and after its resourceVersion of ten digits."""


class JSONPods:
    """The pods in JSON."""

    media_type = watch_type = "application/json"
    separator = b","

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def around_items(self, metadata: dict[str, object], size: int) -> tuple[bytes, bytes]:
        opening = b'{"kind":"PodList","apiVersion":"v1","metadata":' + json.dumps(metadata).encode() + b',"items":['
        return opening, b"]}\n"

    def event(self, number: int) -> Part:
        head, tail = self.parts[number]
        return EVENT + head[1:], tail + b"}\n"  # the item without its brace follows the kind


class ProtobufPods:
    """The same pods in protobuf."""

    media_type = PROTOBUF
    watch_type = f"{PROTOBUF};stream=watch"
    separator = b""

    def __init__(self, parts: list[Part]) -> None:
        found = _transcode.find_wire_type("v1", "Pod")
        assert found is not None
        bodies = [to_message(json.loads(head + MARK + tail), found) for head, tail in parts]
        self.parts = [_around_mark(tagged(2, body)) for body in bodies]
        self._bodies = bodies

    def around_items(self, metadata: dict[str, object], size: int) -> tuple[bytes, bytes]:
        found = find_type("meta_v1", "ListMeta")
        assert found is not None
        meta = tagged(1, to_message(metadata, found))
        kind = tagged(1, tagged(1, b"v1") + tagged(2, b"PodList"))
        return b"k8s\0" + kind + b"\x12" + varint_of(len(meta) + size) + meta, b'\x1a\0"\0'

    def event(self, number: int) -> Part:
        frame = _transcode.event_of("MODIFIED", envelope_of("v1", "Pod", self._bodies[number]))
        return _around_mark(len(frame).to_bytes(4, "big") + frame)


def _around_mark(data: bytes) -> Part:
    before, found, after = data.partition(MARK)
    assert found
    return before, after


class Replay:
    """What is played back.

    Args:
        size: ``large`` or ``small`` pods.
        count: How many pods.
        events: How many events a storm has.
    """

    def __init__(self, size: str, count: int, events: int) -> None:
        self.events = events
        self.listed = count
        self.go = threading.Event()
        self._as_json = JSONPods(list(pods.pods(size, count)))
        self.item_bytes = len(self._items(self._as_json, 0, 1)[0])

    @functools.cached_property
    def _as_protobuf(self) -> ProtobufPods:
        return ProtobufPods(self._as_json.parts)

    def encoding(self, accept: str) -> JSONPods | ProtobufPods:
        """The encoding that a client prefers."""
        return self._as_protobuf if accept.startswith(PROTOBUF) else self._as_json

    @staticmethod
    def _items(encoding: JSONPods | ProtobufPods, begin: int, end: int) -> list[bytes]:
        parts = enumerate(encoding.parts[begin:end], begin + 1)
        return [head + pods.version(number) + tail for number, (head, tail) in parts]

    def list_pieces(self, encoding: JSONPods | ProtobufPods, begin: int, end: int) -> Iterator[list[bytes]]:
        """The pieces of a list's body, in vectors; the first is the whole body's length."""
        last = self.listed
        metadata: dict[str, object] = {"resourceVersion": pods.version(last).decode()}
        if end < last:
            metadata |= {"continue": f"from-{end}", "remainingItemCount": last - end}
        items = self._items(encoding, begin, end)
        size = sum(map(len, items)) + max(0, len(items) - 1) * len(encoding.separator)
        opening, closing = encoding.around_items(metadata, size)
        yield [head_of(encoding.media_type, b"Content-Length: %d" % (len(opening) + size + len(closing))) + opening]
        for start in range(0, len(items), ITEMS_AT_ONCE):
            vector: list[bytes] = []
            for item in items[start : start + ITEMS_AT_ONCE]:
                vector += (item, encoding.separator)
            if start + ITEMS_AT_ONCE >= len(items):
                vector.pop()
            yield vector
        yield [closing]

    def event_pieces(self, encoding: JSONPods | ProtobufPods) -> Iterator[list[bytes]]:
        """The pieces of a storm, in vectors: for each event its chunk up to the version, the version, the rest."""
        count = self.listed
        ready = []
        for number in range(min(count, self.events)):
            before, after = encoding.event(number)
            ready.append((b"%x\r\n" % (len(before) + 10 + len(after)) + before, after + b"\r\n"))
        first = len(encoding.parts) + 1
        for start in range(0, self.events, EVENTS_AT_ONCE):
            vector: list[bytes] = []
            for number in range(start, min(start + EVENTS_AT_ONCE, self.events)):
                before, after = ready[number % count]
                vector += (before, pods.version(first + number), after)
            yield vector


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
    for vector in replay.list_pieces(replay.encoding(accept), begin, end):
        send_all(connection, vector, group=8)


def play_watch(connection: Connection, replay: Replay, accept: str) -> None:
    encoding = replay.encoding(accept)
    connection.sendall(head_of(encoding.watch_type, b"Transfer-Encoding: chunked"))
    replay.go.wait()
    if replay.events:
        for vector in replay.event_pieces(encoding):
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
                watches = query.get("watch", "").lower() in ("1", "true")
                if watches and query.get("sendInitialEvents"):
                    send_refusal(
                        connection, 422, "Invalid", "sendInitialEvents: Forbidden: the feature gate WatchList is off"
                    )
                elif watches:
                    play_watch(connection, replay, accept)
                    return
                else:
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
    options = parser.parse_args()
    replay = Replay(options.size, options.pods, options.events)
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        directory = Path(name)
        tls = server_tls(directory) if options.tls else None
        url = f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=accept, args=(listener, tls, replay), daemon=True).start()
        said = {"url": url, "kubeconfig": str(write_kubeconfig(directory, url)), "item_bytes": replay.item_bytes}
        print(json.dumps(said), flush=True)
        for line in sys.stdin:
            command, *numbers = line.split()
            if command == "reset":
                replay.go.clear()
                replay.listed, replay.events = map(int, numbers)
            elif command == "go":
                replay.go.set()


if __name__ == "__main__":
    main()

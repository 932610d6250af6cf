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

Connection: TypeAlias = "socket.socket | ssl.SSLSocket"

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
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
        self._parts = list(pods.pods(size, count))
        self._items = [head + pods.version(1 + number) + tail for number, (head, tail) in enumerate(self._parts)]
        self.item_bytes = len(self._items[0])

    def list_pieces(self, begin: int, end: int) -> Iterator[list[bytes]]:
        """The pieces of a list's body, in vectors; the first is the whole body's length."""
        last = self.listed
        metadata: dict[str, object] = {"resourceVersion": pods.version(last).decode()}
        if end < last:
            metadata |= {"continue": f"from-{end}", "remainingItemCount": last - end}
        opening = b'{"kind":"PodList","apiVersion":"v1","metadata":' + json.dumps(metadata).encode() + b',"items":['
        items = self._items[begin:end]
        length = len(opening) + sum(map(len, items)) + max(0, len(items) - 1) + 3
        yield [HEAD + b"Content-Length: %d\r\n\r\n" % length + opening]
        for start in range(0, len(items), ITEMS_AT_ONCE):
            vector: list[bytes] = []
            for item in items[start : start + ITEMS_AT_ONCE]:
                vector += (item, b",")
            if start + ITEMS_AT_ONCE >= len(items):
                vector.pop()
            yield vector
        yield [b"]}\n"]

    def event_pieces(self) -> Iterator[list[bytes]]:
        """The pieces of a storm, in vectors: for each event its chunk up to the version, the version, the rest."""
        count = self.listed
        ready = []
        for head, tail in self._parts[: min(count, self.events)]:
            # the item without its brace follows the kind
            before, after = EVENT + head[1:], tail + b"}\n"
            ready.append((b"%x\r\n" % (len(before) + 10 + len(after)) + before, after + b"\r\n"))
        first = len(self._items) + 1
        for start in range(0, self.events, EVENTS_AT_ONCE):
            vector: list[bytes] = []
            for number in range(start, min(start + EVENTS_AT_ONCE, self.events)):
                before, after = ready[number % count]
                vector += (before, pods.version(first + number), after)
            yield vector


def send_all(connection: Connection, vector: list[bytes], *, group: int) -> None:
    """Send the pieces; over TLS ``group`` of them make a record."""
    if isinstance(connection, ssl.SSLSocket):
        for start in range(0, len(vector), group):
            connection.sendall(b"".join(vector[start : start + group]))
        return
    sent = connection.sendmsg(vector)
    if sent < sum(map(len, vector)):
        connection.sendall(memoryview(b"".join(vector))[sent:])


def requests_of(connection: Connection) -> Iterator[str]:
    """The targets of the requests that come; their bodies are read and forgotten."""
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
        yield head.split(b" ", 2)[1].decode()


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


def play_list(connection: Connection, replay: Replay, query: dict[str, str]) -> None:
    limit = int(query.get("limit") or 0)
    begin = int(query.get("continue", "from-0").removeprefix("from-"))
    is_whole = query.get("resourceVersion") == "0" or not limit
    end = replay.listed if is_whole else min(begin + limit, replay.listed)
    for vector in replay.list_pieces(begin, end):
        send_all(connection, vector, group=8)


def play_watch(connection: Connection, replay: Replay) -> None:
    connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    replay.go.wait()
    if replay.events:
        for vector in replay.event_pieces():
            send_all(connection, vector, group=3)
    connection.recv(1)  # until the client goes


def serve(connection: Connection, replay: Replay) -> None:
    """Answer what comes on one connection, until the client closes it."""
    try:
        if isinstance(connection, ssl.SSLSocket):
            connection.do_handshake()
        for target in requests_of(connection):
            url = urlsplit(target)
            query = {name: values[-1] for name, values in parse_qs(url.query).items()}
            if url.path == "/api/v1/pods":
                watches = query.get("watch", "").lower() in ("1", "true")
                if watches and query.get("sendInitialEvents"):
                    send_refusal(
                        connection, 422, "Invalid", "sendInitialEvents: Forbidden: the feature gate WatchList is off"
                    )
                elif watches:
                    play_watch(connection, replay)
                    return
                else:
                    play_list(connection, replay, query)
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

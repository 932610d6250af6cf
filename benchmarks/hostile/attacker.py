"""What a client sends to the servers of this library: ``python -m hostile.attacker NAME URL`` prints what came back.

Only the standard library.
"""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from urllib.parse import urlsplit

ATTACKS: dict[str, Callable[[tuple[str, int]], str]] = {}
Address = tuple[str, int]
MB = 1024**2
PATIENCE = 15.0
CONFIG_MAP = "/api/v1/namespaces/default/configmaps"


def attack(name: str) -> Callable[[Callable[[Address], str]], Callable[[Address], str]]:
    def add(function: Callable[[Address], str]) -> Callable[[Address], str]:
        ATTACKS[name] = function
        return function

    return add


def _connect(address: Address, count: int) -> list[socket.socket]:
    made = []
    for _ in range(count):
        with suppress(OSError):
            made.append(socket.create_connection(address, timeout=5))
    return made


def _closed(connections: Iterable[socket.socket], *, until: float) -> int:
    """Count the connections that the server closes until then."""
    with selectors.DefaultSelector() as selector:
        for each in connections:
            each.setblocking(False)
            selector.register(each, selectors.EVENT_READ)
        closed = 0
        while selector.get_map() and (left := until - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                each = key.fileobj
                assert isinstance(each, socket.socket)
                try:
                    data = each.recv(65_536)
                except OSError:
                    data = b""
                if not data:
                    closed += 1
                    selector.unregister(each)
        return closed


def _probe(address: Address) -> str:
    """What the probe of a kubelet gets meanwhile."""
    began = time.monotonic()
    try:
        connection = http.client.HTTPConnection(*address, timeout=3)
        connection.request("GET", "/healthz")
        code = str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as exc:
        code = type(exc).__name__
    return f"a probe gets {code} in {(time.monotonic() - began) * 1000:.0f} ms"


def _raw(address: Address, data: bytes, *, patience: float = 5.0) -> bytes:
    with socket.create_connection(address, timeout=patience) as connection:
        received = b""
        with suppress(OSError):
            connection.sendall(data)
        with suppress(OSError):
            while (more := connection.recv(65_536)) and len(received) < 100_000:
                received += more
        return received


def _codes(data: bytes) -> str:
    lines = [line for line in data.split(b"\r\n") if line.startswith(b"HTTP/")]
    found = Counter(line.split(b" ")[1].decode() for line in lines)
    if not data:
        return "closed"
    return (
        ", ".join(f"{code} x {n}" if n > 1 else code for code, n in found.items())
        or f"{len(data)} bytes: {data[:20]!r}"
    )


# --- the health and metrics port --------------------------------------------------------------------------------------


def _idle(address: Address, count: int) -> str:
    connections = _connect(address, count)
    probe = _probe(address)
    closed = _closed(connections, until=time.monotonic() + PATIENCE)
    return f"{closed} of {len(connections)} are closed within {PATIENCE:g} s; {probe}"


attack("idle-clients")(lambda address: _idle(address, 200))
attack("many-clients")(lambda address: _idle(address, 1_000) + f"; afterwards {_probe(address)}")


@attack("slowloris")
def _slowloris(address: Address) -> str:
    connections = _connect(address, 100)
    for each in connections:
        with suppress(OSError):
            each.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    for number in range(int(PATIENCE)):
        time.sleep(1)
        for each in connections:
            with suppress(OSError):
                each.sendall(b"X-%d: y\r\n" % number)
    probe = _probe(address)
    return f"{_closed(connections, until=time.monotonic() + 0.5)} of {len(connections)} are closed; {probe}"


@attack("slow-readers")
def _slow_readers(address: Address) -> str:
    connections = _connect(address, 200)
    for _ in range(8):
        for each in connections:
            with suppress(OSError):
                each.settimeout(0.01)
                each.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        time.sleep(0.5)
    return _probe(address)


@attack("h2c-preface")
def _h2c_preface(address: Address) -> str:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    return f"{_codes(_raw(address, preface))}; {_probe(address)}"


def _request(*fields: str, path: str = "/metrics") -> bytes:
    return ("\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *fields]) + "\r\n\r\n").encode("latin-1")


@attack("h2c-upgrade")
def _h2c_upgrade(address: Address) -> str:
    fields = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    return _codes(_raw(address, _request(*fields)))


@attack("websocket")
def _websocket(address: Address) -> str:
    fields = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {'A' * 22}==",
    )
    return _codes(_raw(address, _request(*fields)))


@attack("bad-accept")
def _bad_accept(address: Address) -> str:
    values = (
        ";",
        "a/b;q=x",
        "text/plain; version=x",
        "application/openmetrics-text; version=1.x",
        "application/openmetrics-text; version=²",
        f"text/plain; version={'9' * 10_000}",
        "application/openmetrics-text;version=9;q=1e999",
        "application/openmetrics-text; version=1.0.0; escaping=nonsense",
        ",".join(["text/plain;q=0.1"] * 3_000),
        "\xff\xfe",
        ";" * 30_000,
    )
    codes = [_codes(_raw(address, _request(f"Accept: {value}", "Connection: close"))) for value in values]
    return " ".join(codes)


@attack("long-request-head")
def _long_head(address: Address) -> str:
    return _codes(_raw(address, _request(*(f"X-{n}: {'x' * 1_000}" for n in range(1_000)))))


@attack("long-request-body")
def _long_body(address: Address) -> str:
    head = f"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: {100 * MB}\r\n\r\n".encode()
    return _codes(_raw(address, head + b"x" * 100 * MB))


@attack("pipelined")
def _pipelined(address: Address) -> str:
    return _codes(_raw(address, _request(path="/healthz") * 10_000, patience=10)) + f"; {_probe(address)}"


@attack("bad-requests")
def _bad_requests(address: Address) -> str:
    sent = (
        b"\0" * 1_000,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
    )
    return " ".join(_codes(_raw(address, data, patience=2)) for data in sent) + f"; {_probe(address)}"


# --- the embedded API server ------------------------------------------------------------------------------------------


def _send(
    address: Address, method: str, path: str, body: bytes | Iterable[bytes], content_type: str, **fields: str
) -> str:
    connection = http.client.HTTPConnection(*address, timeout=20)
    headers = {"Content-Type": content_type, **{name.replace("_", "-"): value for name, value in fields.items()}}
    with suppress(OSError):  # it may answer before it has read everything
        connection.request(method, path, body, headers, encode_chunked=not isinstance(body, bytes))
    try:
        response = connection.getresponse()
        size = 0
        while data := response.read(65_536):
            size += len(data)
    except (OSError, http.client.HTTPException) as exc:
        return type(exc).__name__
    return f"{response.status} with {size:,} bytes" if size > 100_000 else str(response.status)


def _patch(address: Address, operations: bytes) -> str:
    return _send(address, "PATCH", f"{CONFIG_MAP}/c", operations, "application/json-patch+json")


def _copies(count: int, first: object, *, as_list: bool = False) -> bytes:
    operations: list[dict[str, object]] = [{"op": "add", "path": "/data", "value": first}]
    for number in range(count):
        path = "/data/-" if as_list else f"/data/k{number}"
        operations.append({"op": "copy", "from": "/data", "path": path})
    return json.dumps(operations).encode()


@attack("copy-bomb")
def _copy_bomb(address: Address) -> str:
    return _patch(address, _copies(17, {"a": "x" * 3_000}))


@attack("copy-bomb-list")
def _copy_bomb_list(address: Address) -> str:
    return _patch(address, _copies(28, [1], as_list=True))


def _nested(address: Address, levels: int) -> str:
    spec = b'{"a":' * levels + b"1" + b"}" * levels
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":%s}'
    said = [
        _send(address, "POST", CONFIG_MAP, body % (b"deep", spec), "application/json"),
        _send(address, "PUT", f"{CONFIG_MAP}/c", body % (b"c", spec), "application/json"),
    ]
    for kind in ("merge-patch", "strategic-merge-patch"):
        patch = b'{"data":%s}' % spec
        said.append(_send(address, "PATCH", f"{CONFIG_MAP}/c", patch, f"application/{kind}+json"))
    said.append(_patch(address, b'[{"op":"add","path":"/data","value":%s}]' % spec))
    said.append(_patch(address, b'[{"op":"test","path":"/data","value":%s}]' % spec))
    said.append(_send(address, "GET", CONFIG_MAP, b"", "application/json"))
    return " ".join(said)


attack("nested-body-3000")(lambda address: _nested(address, 3_000))
attack("nested-body-100000")(lambda address: _nested(address, 100_000))


@attack("big-body")
def _big_body(address: Address) -> str:
    head = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"big"},"data":{"a":"'
    return _send(address, "POST", CONFIG_MAP, head + b"x" * 100 * MB + b'"}}', "application/json")


@attack("endless-body")
def _endless_body(address: Address) -> str:
    until = time.monotonic() + 8

    def pieces() -> Iterable[bytes]:
        while time.monotonic() < until:
            yield b"x" * MB

    return _send(address, "POST", CONFIG_MAP, pieces(), "application/json", Transfer_Encoding="chunked")


@attack("no-json")
def _no_json(address: Address) -> str:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page%d"}}'
    plain = _send(address, "POST", CONFIG_MAP, body % 1, "text/plain")
    other = _send(address, "POST", CONFIG_MAP, body % 2, "application/json", Host="attacker.example")
    return f"text/plain: {plain}; another Host: {other}"


@attack("many-operations")
def _many_operations(address: Address) -> str:
    one = b'{"op":"test","path":"/data/a","value":"xxxxxxxxxx"}'
    return _patch(address, b"[" + b",".join([one] * 1_000_000) + b"]")


@attack("long-selector")
def _long_selector(address: Address) -> str:
    selector = ",".join(f"a{number}" for number in range(9_000))
    return _send(address, "GET", f"{CONFIG_MAP}?labelSelector={selector}", b"", "application/json")


def main(name: str, url: str) -> None:
    parts = urlsplit(url)
    print(ATTACKS[name]((parts.hostname or "", parts.port or 80)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""``python -m trioformer.testing serve``: an embedded API server for kubectl and demos.

``kubectl get``, ``create -f``, ``apply``, ``label``, ``patch``, ``scale``, ``delete`` and ``wait`` work.
Generators such as ``kubectl create namespace`` send protobuf, which is not supported: pipe their
``--dry-run=client -o yaml`` into ``create -f -``.
"""

from __future__ import annotations

import argparse
import logging
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import trio
import yaml

from .._serving import open_listener, serve_app, url_of
from ._server import APIServer
from ._simulation import simulate_cluster


class _UsageError(Exception):
    """The server cannot start; the message is one line."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        trio.run(_serve, options)
    except _UsageError as exc:
        print(f"error: {exc}", file=sys.stderr)  # noqa: T201  # output of the command
        return 1
    except KeyboardInterrupt:  # before the signal handler is installed
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    summary = "Serve an embedded API server over plain HTTP until Ctrl-C or SIGTERM; prints its URL."
    parser = argparse.ArgumentParser(
        prog="python -m trioformer.testing", description="An API server for tests and demos."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve an empty cluster over plain HTTP", description=summary)
    serve.add_argument(
        "--bind", default="127.0.0.1:8001", metavar="HOST:PORT", help="default: 127.0.0.1:8001; port 0: any free port"
    )
    serve.add_argument(
        "--write-kubeconfig", type=Path, metavar="PATH", help="write a kubeconfig for kubectl to this file"
    )
    serve.add_argument(
        "--living", action="store_true", help="simulate a cluster whose pods are created, change and are deleted"
    )
    serve.add_argument("--access-log", action="store_true", help="log finished requests to standard error")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            listener = await open_listener(options.bind)
        except ValueError as exc:
            raise _UsageError(str(exc)) from exc
        except OSError as exc:
            raise _UsageError(f"cannot listen on {options.bind}: {exc.strerror}") from exc
        await _write_kubeconfig(options.write_kubeconfig, url_of(listener), listener)
        # The time in milliseconds, so that the revisions of a restarted server are higher than those before.
        server = APIServer(first_revision=int(time.time() * 1_000))
        access_log = _access_log() if options.access_log else None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_stop_on_signal, signals, nursery.cancel_scope)
            url = await nursery.start(partial(serve_app, server.asgi_app, listener, access_log=access_log))
            if options.living:
                await nursery.start(simulate_cluster, server)
            print(url, flush=True)  # noqa: T201  # output of the command


async def _stop_on_signal(signals: AsyncIterator[int], scope: trio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()
        return


async def _write_kubeconfig(path: Path | None, url: str, listener: socket.socket) -> None:
    if path is None:
        return
    name = "trioformer"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    try:
        await trio.Path(path).write_text(yaml.safe_dump(content, sort_keys=False))
    except OSError as exc:
        listener.close()
        raise _UsageError(f"cannot write the kubeconfig {path}: {exc.strerror}") from exc


def _access_log() -> logging.Logger:
    logger = logging.getLogger("trioformer.testing.access")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler())
    return logger


if __name__ == "__main__":
    sys.exit(main())

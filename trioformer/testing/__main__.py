"""``python -m trioformer.testing serve``: an embedded API server for kubectl and demos.

The commands ``kubectl get``, ``create -f``, ``apply``, ``label``, ``patch``, ``scale``, ``delete`` and ``wait`` work
with this server.
So do generators such as ``kubectl create deployment``, which send protobuf.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import trio
import yaml

from .._files import read_file, write_private
from .._listeners import TLSContexts, url_of
from .._run import run
from .._secret import Secret
from .._serving import serve_app
from ..errors import ConfigError, ManifestError, StatusError
from ._identity import Identity, kubeconfig_content, make_identity, new_token
from ._serve_http import LIMITS, Access
from ._server import APIServer
from ._serving._guard import checked_host, plain_host
from ._simulation import simulate_cluster
from ._state_file import StateError, StateFile

_KUBECONFIG: Final = Path("trioformer.kubeconfig")
_STOPPED: Final = (130, 143)
"""The exit codes after a signal, which is the only way to end the server."""


class _UsageError(Exception):
    """An error that prevents the server from starting, with a one-line message."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code = run(_serve, options)
    except _UsageError as exc:
        print(f"error: {exc}", file=sys.stderr)  # noqa: T201  # output of the command
        return 1
    return 0 if code in _STOPPED else code


def _parser() -> argparse.ArgumentParser:
    summary = "Serve an embedded API server until Ctrl-C or SIGTERM; prints its URL."
    parser = argparse.ArgumentParser(
        prog="python -m trioformer.testing", description="An API server for tests and demos."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve an empty cluster", description=summary)
    serve.add_argument(
        "--bind", default="127.0.0.1:8001", metavar="HOST:PORT", help="default: 127.0.0.1:8001; port 0: any free port"
    )
    serve.add_argument(
        "--write-kubeconfig",
        type=Path,
        metavar="PATH",
        help=f"write a kubeconfig for clients to this file; default: {_KUBECONFIG}, or none with --insecure-http",
    )
    serve.add_argument("--state", type=Path, metavar="PATH", help="keep the objects in this file across restarts")
    serve.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="PATH",
        help="create the objects in this file or directory in a new cluster; may be repeated",
    )
    serve.add_argument(
        "--tables", type=Path, metavar="PATH", help="a directory with the tables of another release of Kubernetes"
    )
    clusters = serve.add_mutually_exclusive_group()
    clusters.add_argument(
        "--controllers",
        action="store_true",
        help="create, schedule and run the pods of Deployments and other workloads",
    )
    clusters.add_argument(
        "--living", action="store_true", help="simulate a cluster whose pods are created, change and are deleted"
    )
    serve.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="another name of this server; may be repeated"
    )
    serve.add_argument(
        "--insecure-http",
        action="store_true",
        help="serve HTTP without TLS and, unless --token-file is given, without a token",
    )
    serve.add_argument(
        "--certificate", type=Path, metavar="PATH", help="the certificate (PEM); default: one of a new authority"
    )
    serve.add_argument("--key", type=Path, metavar="PATH", help="the certificate's key (PEM)")
    serve.add_argument(
        "--token-file", type=Path, metavar="PATH", help="the bearer token for clients; default: a new one"
    )
    serve.add_argument("--allow-insecure", action="store_true", help="accept other machines without TLS or a token")
    serve.add_argument("--access-log", action="store_true", help="log finished requests to standard error")
    return parser


async def _serve(options: argparse.Namespace) -> None:
    try:
        state = None if options.state is None else await trio.to_thread.run_sync(StateFile.open, options.state)
        access, tls = await _read_access(options, state)
        # Milliseconds, so that a restarted server has higher revisions than before.
        server = APIServer(
            first_revision=int(time.time() * 1_000),
            garbage_collector=True,
            controllers=options.controllers,
            tables=options.tables,
        )
        is_restored = state is not None and state.restore(server)
    except StateError as exc:
        raise _UsageError(f"--state: {exc}") from exc
    except ValueError as exc:
        raise _UsageError(f"--tables: {exc}") from exc
    if not is_restored:
        _load(server, options.load)
    listener = await _listen(options.bind, access)
    url = url_of(listener, "https" if tls else "http")
    kubeconfig = options.write_kubeconfig or (None if options.insecure_http else _KUBECONFIG)
    await _write_kubeconfig(kubeconfig, access, listener)
    access_log = _access_log() if options.access_log else None
    async with trio.open_nursery() as nursery:
        await nursery.start(server.run)
        app = access.guard(server, options.bind, listener)
        await nursery.start(partial(serve_app, app, listener, limits=LIMITS, tls=tls, access_log=access_log))
        if state is not None:
            await nursery.start(state.run, server)
        if options.living:
            await nursery.start(simulate_cluster, server)
        print(url, flush=True)  # noqa: T201  # output of the command
        if kubeconfig is _KUBECONFIG:
            print(f"try: kubectl --kubeconfig {kubeconfig} get namespaces", file=sys.stderr)  # noqa: T201


def _load(server: APIServer, paths: list[str]) -> None:
    try:
        if paths:
            server.load(*paths)
    except (ManifestError, StatusError) as exc:
        raise _UsageError("; ".join(str(exc).splitlines())) from exc


async def _read_access(options: argparse.Namespace, state: StateFile | None) -> tuple[Access, TLSContexts | None]:
    if options.insecure_http and options.certificate is not None:
        raise _UsageError("--insecure-http and --certificate exclude each other")
    try:
        token: Secret[str] | None = None
        if options.token_file is not None:
            token = await trio.to_thread.run_sync(_read_token, options.token_file)
        identity = None
        if not options.insecure_http:
            if options.certificate is None and options.key is None:
                identity = _identity(options, state)
            token = token or (new_token() if identity is None else identity.token)
        access = Access(
            hosts=options.allow_host,
            certificate=options.certificate,
            key=options.key,
            token=token,
            identity=identity,
            allow_insecure=options.allow_insecure,
        )
        return access, access.tls_contexts(("--certificate", "--key"))
    except (ConfigError, ValueError) as exc:
        raise _UsageError(str(exc)) from exc


def _identity(options: argparse.Namespace, state: StateFile | None) -> Identity:
    """Return the identity in the state file, so that a kubeconfig stays valid, or a new one."""
    host = options.bind.rpartition(":")[0].strip("[]")
    names = [*map(checked_host, options.allow_host), *([plain_host(host)] if host else [])]
    identity = None if state is None else state.identity
    if identity is None or not identity.names.issuperset(names):
        try:
            identity = make_identity(names)
        except ModuleNotFoundError as exc:
            problem = f"TLS needs {exc.name}: run pip install 'trioformer[testing]', or pass --certificate and --key"
            raise _UsageError(f"{problem}, or --insecure-http") from exc
        if state is not None:
            state.identity = identity
    return identity


def _read_token(path: Path) -> Secret[str]:
    try:
        return Secret(read_file(path).reveal().decode("ascii").strip())
    except OSError as exc:
        raise _UsageError(f"--token-file: {path} cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError:
        # The text of the exception quotes the token.
        raise _UsageError(f"--token-file: {path} does not contain only ASCII characters") from None


async def _listen(bind: str, access: Access) -> socket.socket:
    try:
        return await access.listen(bind)
    except ValueError as exc:
        raise _UsageError(str(exc)) from exc
    except OSError as exc:
        raise _UsageError(f"cannot listen on {bind}: {exc.strerror}") from exc


async def _write_kubeconfig(path: Path | None, access: Access, listener: socket.socket) -> None:
    if path is None:
        return
    try:
        await trio.to_thread.run_sync(write_private, path, _kubeconfig(access.url(listener), access))
    except OSError as exc:
        listener.close()
        raise _UsageError(f"cannot write the kubeconfig {path}: {exc.strerror}") from exc


def _kubeconfig(url: str, access: Access) -> Secret[bytes]:
    authority = None
    if access.identity is not None:
        authority = access.identity.authority.encode()
    elif access.certificate is not None:  # the file must include the authority of a certificate that is not self-signed
        authority = read_file(access.certificate).reveal()
    credentials = {"token": "TOKEN"} if access.token else {}
    content = kubeconfig_content("trioformer", url, authority, "trioformer", credentials, namespace="default")
    text = yaml.safe_dump(content, sort_keys=False)
    if not access.token:
        return Secret(text.encode())
    # A quoted YAML string is a JSON string.
    return Secret(text.replace("token: TOKEN", f"token: {json.dumps(access.token.reveal())}").encode())


def _access_log() -> logging.Logger:
    logger = logging.getLogger("trioformer.testing.access")
    logger.setLevel(logging.INFO)
    logger.addHandler(logging.StreamHandler())
    return logger


if __name__ == "__main__":
    sys.exit(main())

"""The command ``doctor``, which checks the connection to the cluster and prints a line for each check.

Secrets are not printed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, cast, final
from urllib.parse import quote, urlsplit

import attrs
import trio

from ...errors import ConfigError, ForbiddenError, NotFoundError, StatusError, TrioformerError, UnexpectedResponseError
from .._arguments import Parser
from .._failures import UsageError
from .._printing import now
from .._session import Session

if TYPE_CHECKING:
    from ...client import Client
    from ...kubeconfig import ClusterConfig

__all__ = ["add_flags", "run"]

_SKEW: Final = 5.0
"""The allowed difference between the clocks, in seconds.  Certificates and tokens depend on correct clocks."""
_PATIENCE: Final = 10.0
"""The maximum duration of a check, in seconds."""
_WIDTH: Final = 16


def add_flags(parser: Parser) -> None:
    """Add no flags, because the common flags already select the cluster."""


async def run(session: Session, flags: argparse.Namespace) -> int | None:
    """Run ``doctor``."""
    if flags.arguments:
        raise UsageError(f"unexpected arguments: [{' '.join(flags.arguments)}]")
    report = _Report(session)
    try:
        config = session.config
    except ConfigError as exc:
        report.failed("configuration", str(exc))
        return 1
    report.ok("configuration", _source(config))
    report.ok("server", f"{config.server}, namespace {session.namespace}")
    report.ok("proxy", _proxy(config, session.environ))
    report.ok("credentials", _credentials(config))
    async with session.open_client() as client:
        if await report.check("reachability", lambda: _reach(client, report, config)):
            for name, function in (
                ("authentication", _authenticate),
                ("health", _health),
                ("list", _list),
                ("list in pages", _list_pages),
                ("list from cache", _list_cached),
                ("table", _table),
                ("watch", _watch),
                ("watch-list", _watch_list),
            ):
                await report.check(name, lambda function=function: function(client, session))  # type: ignore[misc]
    return 1 if report.has_failed else None


@final
@attrs.define(eq=False)
class _Report:
    _session: Session
    has_failed: bool = attrs.field(default=False, init=False)

    def ok(self, name: str, text: str) -> None:
        """Print a line for a successful check."""
        self._session.print(f"ok      {name:{_WIDTH}}{text}")

    def warn(self, name: str, text: str) -> None:
        """Print a line for a check with a warning."""
        self._session.print(f"warning {name:{_WIDTH}}{text}")

    def failed(self, name: str, text: str) -> None:
        """Print a line for a failed check."""
        self.has_failed = True
        self._session.print(f"failed  {name:{_WIDTH}}{text}")

    async def check(self, name: str, function: Callable[[], Awaitable[str]]) -> bool:
        """Run a check, print a line with its result, and return False if the check failed."""
        try:
            with trio.fail_after(_PATIENCE):
                text = await function()
        except trio.TooSlowError:
            self.failed(name, f"no response within {_PATIENCE:.0f} s")
        except ForbiddenError as exc:
            self.warn(name, f"not allowed to check: {exc.status_message}")
            return True
        except TrioformerError as exc:
            self.failed(name, str(exc))
        else:
            self.ok(name, text)
            return True
        self._session.out.flush()
        return False


def _source(config: ClusterConfig) -> str:
    if config.in_cluster:
        return "the service account of this pod (no kubeconfig was found)"
    context = f", context {config.context}" if config.context else ""
    return f"{config.source}{context}"


def _proxy(config: ClusterConfig, environ: Mapping[str, str]) -> str:
    if config.proxy_url:
        return f"{_host(config.proxy_url)}, from the configuration"
    scheme = urlsplit(config.server).scheme
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
        if value := environ.get(name):
            exceptions = environ.get("no_proxy") or environ.get("NO_PROXY")
            but = f", except for {exceptions} ($NO_PROXY)" if exceptions else ""
            return f"{_host(value)}, from ${name}{but}"
    return "none"


def _host(url: str) -> str:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _credentials(config: ClusterConfig) -> str:
    found = []
    if config.client_certificate_data or config.client_certificate_file:
        found.append(f"client certificate ({config.client_certificate_file or 'in the configuration'})")
    if config.token_file:
        found.append(f"bearer token from {config.token_file}")
    elif config.token:
        found.append("bearer token (hidden)")
    if config.username:
        found.append(f"user name {config.username} and password (hidden)")
    if config.exec is not None:
        found.append(f"credential plugin {config.exec.command}")
    if config.impersonate is not None:
        found.append(f"impersonating {config.impersonate.user}")
    return ", ".join(found) or "none"


async def _reach(client: Client, report: _Report, config: ClusterConfig) -> str:
    begun = trio.current_time()
    try:
        response = await client.request("GET", "/version")
    except StatusError as exc:
        if exc.code not in (401, 403):
            raise
        took = trio.current_time() - begun
        return f"responds in {took * 1000:.0f} ms, but does not return its version (HTTP {exc.code})"
    took = trio.current_time() - begun
    found = response.json()
    version = found.get("gitVersion", "") if isinstance(found, dict) else ""
    if config.server.startswith("https:"):
        how = "not verified (insecure-skip-tls-verify)" if config.insecure_skip_tls_verify else "verified"
        by = "the CA of the configuration" if config.ca_data or config.ca_file else "the CAs of the system"
        report.ok("tls", how if config.insecure_skip_tls_verify else f"{how} by {by}")
    else:
        report.warn("tls", "none: the traffic is not encrypted")
    report.ok("version", str(version))
    date = response.headers.get("date")
    if date:
        _clock(report, date)
    return f"responds in {took * 1000:.0f} ms"


def _clock(report: _Report, date: str) -> None:
    try:
        ahead = (now() - parsedate_to_datetime(date)).total_seconds()
    except (ValueError, TypeError):
        return
    text = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the server"
    if abs(ahead) > _SKEW:
        report.warn("clock", text)
    else:
        report.ok("clock", "in sync with the server")


async def _request(client: Client, method: str, path: str, **options: Any) -> dict[str, Any]:
    """Send a request, and return the JSON object in the response."""
    found: Any = (await client.request(method, path, **options)).json()
    if not isinstance(found, dict):
        raise UnexpectedResponseError(
            f"{path}: unexpected response: not a JSON object; check the URL of the server", code=200
        )
    return cast("dict[str, Any]", found)


async def _authenticate(client: Client, _: Session) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        review = await _request(client, "POST", path, body=body)
    except NotFoundError:
        return "accepted; the server does not report the user"
    user = (review.get("status") or {}).get("userInfo") or {}
    groups = ", ".join(user.get("groups") or [])
    return f"as {user.get('username', '')}" + (f", in {groups}" if groups else "")


async def _health(client: Client, _: Session) -> str:
    health = await client.health("readyz")
    if not health.is_ok:
        return f"not ready: {', '.join(health.failed)}"
    return "ready"


def _path(session: Session) -> str:
    return f"/api/v1/namespaces/{quote(session.namespace, safe='')}/pods"


async def _list(client: Client, session: Session) -> str:
    begun = trio.current_time()
    found = await _request(client, "GET", _path(session))
    took = (trio.current_time() - begun) * 1000
    return f"{len(found.get('items') or [])} pods in {session.namespace}, in {took:.0f} ms"


async def _list_pages(client: Client, session: Session) -> str:
    found = await _request(client, "GET", _path(session), params={"limit": 1})
    count = len(found.get("items") or [])
    return "works" if count <= 1 else "not supported: the server ignores limit"


async def _list_cached(client: Client, session: Session) -> str:
    await client.request("GET", _path(session), params={"resourceVersion": "0"})
    return "works"


async def _table(client: Client, session: Session) -> str:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    found = await _request(client, "GET", _path(session), params={"limit": 1}, accept=accept)
    return "works" if found.get("kind") == "Table" else "not supported: `get` shows only names and ages"


async def _watch(client: Client, session: Session) -> str:
    found = await _request(client, "GET", _path(session), params={"limit": 1})
    version = (found.get("metadata") or {}).get("resourceVersion", "")
    params = {"watch": True, "resourceVersion": version, "timeoutSeconds": 1, "allowWatchBookmarks": True}
    async with client.stream("GET", _path(session), params=params, endless=True) as stream:
        async for _ in stream.lines():
            break
    return "works"


async def _watch_list(client: Client, session: Session) -> str:
    params: dict[str, str | int] = {
        "watch": True,
        "sendInitialEvents": True,
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": True,
        "timeoutSeconds": 2,
    }
    try:
        async with client.stream("GET", _path(session), params=params, endless=True) as stream:
            async for line in stream.lines():
                event = json.loads(line)
                if not isinstance(event, dict):
                    return "not supported by this server"
                metadata = (event.get("object") or {}).get("metadata") or {}
                if "k8s.io/initial-events-end" in (metadata.get("annotations") or {}):
                    return "works"
    except StatusError as exc:
        if exc.code in (400, 422):
            return "not supported by this server"
        raise
    except ValueError:
        return "not supported by this server"
    return "incomplete: the server ended the watch before its last event"

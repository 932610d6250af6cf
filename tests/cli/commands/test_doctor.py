"""``doctor``: a line for each check, which says what a server of another kind lacks; secrets are not shown."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest
import trio

from tests.support.cli import Result, opener_of
from tests.support.fixed_answers import failure, run_with
from trioformer.cli._main import run_command
from trioformer.cli.commands._doctor import _credentials, _proxy, _source
from trioformer.kubeconfig import ClusterConfig, ExecConfig, Impersonation
from trioformer.testing import APIServer

REVIEWS = "/selfsubjectreviews"
PODS = "/api/v1/namespaces/default/pods"


def lines_of(result: Result) -> dict[str, str]:
    """Return the outcome and the text of each check, by its name."""
    lines = result.out.splitlines()
    return {line[8:24].rstrip(): f"{line[:8].rstrip()}: {line[24:]}" for line in lines}


@pytest.mark.parametrize(
    ("path", "answer", "check", "line"),
    [
        (
            REVIEWS,
            (201, {"status": {"userInfo": {"username": "jane", "groups": ["dev", "ops"]}}}),
            "authentication",
            "ok: as jane, in dev, ops",
        ),
        (
            REVIEWS,
            failure(403, "Forbidden", "not you"),
            "authentication",
            "warning: not allowed",
        ),
        (
            REVIEWS,
            (200, ["what a proxy sends"]),
            "authentication",
            "failed: /apis/authentication.k8s.io/v1/selfsubjectreviews: ",
        ),
        ("/readyz", (500, "[-]etcd failed: reason withheld\nreadyz check failed\n"), "health", "ok: not ready: etcd"),
        (
            f"{PODS}?limit=1",
            (200, {"kind": "PodList", "items": [{}, {}]}),
            "list in pages",
            "ok: not supported: the server ignores limit",
        ),
        ("sendInitialEvents", failure(422, "Invalid", "no"), "watch-list", "ok: not supported by this server"),
        ("sendInitialEvents", (200, "not JSON\n"), "watch-list", "ok: not supported by this server"),
        (
            "sendInitialEvents",
            (200, '{"type": "ADDED", "object": {}}\n'),
            "watch-list",
            "ok: incomplete",
        ),
    ],
)
async def test_what_a_server_answers_is_in_the_line_of_the_check(
    api_server: APIServer, autojump_clock: object, path: str, answer: tuple[int, object], check: str, line: str
) -> None:
    result, _ = await run_with(api_server, {path: answer}, "doctor")
    assert lines_of(result)[check].startswith(line)
    assert result.code == line.startswith("failed")


async def test_a_check_that_fails_is_the_exit_code_and_not_the_end(
    api_server: APIServer, autojump_clock: object
) -> None:
    result, _ = await run_with(api_server, {REVIEWS: failure(401, "Unauthorized", "who?")}, "doctor")
    assert result.code == 1
    lines = lines_of(result)
    assert lines["authentication"].startswith("failed: ")
    assert lines["watch"] == "ok: works"


async def doctor(
    response: httpx.Response | None, *arguments: str, url: str = "http://one.example"
) -> tuple[int, dict[str, str]]:
    """Run the tool where a server answers everything alike; None for never."""

    async def answer(_: httpx.Request) -> httpx.Response:
        if response is None:
            await trio.sleep_forever()
            raise AssertionError
        return httpx.Response(response.status_code, headers=response.headers, content=response.content)

    out, err = io.StringIO(), io.StringIO()
    opener = opener_of(httpx.MockTransport(answer))
    code = await run_command(["doctor", "-s", url, *arguments], out, err, {}, opener)
    return code, lines_of(Result(code, out.getvalue(), err.getvalue()))


async def test_a_server_that_does_not_respond_is_not_reachable(autojump_clock: object) -> None:
    code, lines = await doctor(None)
    assert code == 1
    assert lines["reachability"] == "failed: no response within 10 s"
    assert "list" not in lines


async def test_a_server_that_hides_its_version_is_reachable() -> None:
    _, answer = failure(403, "Forbidden", "no")
    code, lines = await doctor(httpx.Response(403, json=answer))
    assert lines["reachability"].startswith("ok: responds in ")
    assert lines["list"].startswith("warning: not allowed")
    assert code == 0


async def test_a_server_without_version_is_not_reachable() -> None:
    code, lines = await doctor(httpx.Response(404, json={}))
    assert (code, "list" in lines) == (1, False)
    assert lines["reachability"].startswith("failed: ")


@pytest.mark.parametrize(
    ("url", "flags", "line"),
    [
        ("http://one.example", [], "warning: none"),
        ("https://one.example", [], "ok: verified by"),
        ("https://one.example", ["--insecure-skip-tls-verify"], "ok: not verified"),
    ],
)
async def test_how_the_connection_is_protected_is_a_line(url: str, flags: list[str], line: str) -> None:
    _, lines = await doctor(httpx.Response(200, json={"gitVersion": "v1.99.0"}), *flags, url=url)
    assert lines["tls"].startswith(line)
    assert lines["version"] == "ok: v1.99.0"


@pytest.mark.parametrize(
    ("difference", "line"),
    [(0, "in sync"), (3600, "ahead"), (-3600, "behind")],
)
async def test_clocks_that_differ_are_a_warning(monkeypatch: pytest.MonkeyPatch, difference: int, line: str) -> None:
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr("trioformer.cli.commands._doctor.now", lambda: time)
    date = format_datetime(time - timedelta(seconds=difference), usegmt=True)
    _, lines = await doctor(httpx.Response(200, json={}, headers={"date": date}))
    assert line in lines["clock"]
    assert lines["clock"].startswith("warning: 3600 s" if difference else "ok: ")


@pytest.mark.parametrize("headers", [{}, {"date": "yesterday"}])
async def test_a_server_without_date_has_no_line_for_the_clock(headers: dict[str, str]) -> None:
    _, lines = await doctor(httpx.Response(200, json={}, headers=headers))
    assert "clock" not in lines
    assert lines["version"] == "ok: "


SERVER = "http://one.example"


def test_the_source_of_the_configuration_is_named() -> None:
    assert "service account" in _source(ClusterConfig(server=SERVER, in_cluster=True))


@pytest.mark.parametrize(
    ("url", "environ", "text"),
    [
        (None, {}, "none"),
        ("http://u:secret@p:1", {"http_proxy": "q"}, "http://p:1, from the configuration"),
        (None, {"http_proxy": "u:secret@p:1"}, "http://p:1, from $http_proxy"),
        (
            None,
            {"HTTP_PROXY": "socks5://p", "NO_PROXY": "a,b"},
            "socks5://p, from $HTTP_PROXY, except for a,b ($NO_PROXY)",
        ),
    ],
)
def test_the_proxy_is_named_without_its_password(url: str | None, environ: dict[str, str], text: str) -> None:
    assert _proxy(ClusterConfig(server=SERVER, proxy_url=url), environ) == text


@pytest.mark.parametrize(
    ("config", "text"),
    [
        (ClusterConfig(server=SERVER), "none"),
        (
            ClusterConfig(server=SERVER, client_certificate_data=b"x", client_key_data=b"secret", token="secret"),
            "client certificate (in the configuration), bearer token (hidden)",
        ),
        (
            ClusterConfig(
                server=SERVER, client_certificate_file="/c", client_key_file="/k", token="secret", token_file="/t"
            ),
            "client certificate (/c), bearer token from /t",
        ),
        (
            ClusterConfig(server=SERVER, username="u", password="secret", impersonate=Impersonation(user="jane")),
            "user name u and password (hidden), impersonating jane",
        ),
        (
            ClusterConfig(
                server=SERVER, exec=ExecConfig(api_version="client.authentication.k8s.io/v1", command="login")
            ),
            "credential plugin login",
        ),
    ],
)
def test_credentials_are_named_and_not_shown(config: ClusterConfig, text: str) -> None:
    assert _credentials(config) == text

"""``apply``: by the client and by the server, dry runs, pruning, and files that are not valid."""

from __future__ import annotations

import io
import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import httpx
import pytest
import yaml

from tests.support.cli import Result, opener_of, run
from trioformer.cli._main import run_command
from trioformer.cli._merging import LAST_APPLIED
from trioformer.cli.commands._apply_migration import unite_fields
from trioformer.models import ObjectMeta
from trioformer.models.core_v1 import ConfigMap, Namespace
from trioformer.testing import APIServer

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:1"}]}
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, labels: {app: web}}\ndata: {a: '1', b: '2'}\n"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  names: {kind: Website, plural: websites, singular: website}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("web.yaml")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


async def apply(server: APIServer, file: Path, text: str, *arguments: str) -> Result:
    write(file, text)
    return await run(server, "apply", "-f", str(file), *arguments)


async def stored(server: APIServer, name: str) -> Any:
    return json.loads((await run(server, "get", name, "-o", "json", "--show-managed-fields")).out)


async def test_objects_are_created_then_unchanged_then_configured(api_server: APIServer, file: Path) -> None:
    whole = f"{DEPLOYMENT}---\n{CONFIG}"
    assert (await apply(api_server, file, whole)).out == "deployment.apps/web created\nconfigmap/web created\n"
    assert (await apply(api_server, file, whole)).out == "deployment.apps/web unchanged\nconfigmap/web unchanged\n"
    changed = whole.replace("web:1", "web:2").replace(", b: '2'", "")
    result = await apply(api_server, file, changed)
    assert (result.code, result.out) == (0, "deployment.apps/web configured\nconfigmap/web configured\n")
    assert (await stored(api_server, "cm/web"))["data"] == {"a": "1"}
    deployment = await stored(api_server, "deploy/web")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    entries = {(entry["manager"], entry["operation"]) for entry in deployment["metadata"]["managedFields"]}
    assert entries == {("kubectl-client-side-apply", "Update")}


async def test_what_others_have_set_stays(api_server: APIServer, file: Path) -> None:
    await apply(api_server, file, CONFIG)
    async with api_server.open_client() as client:
        await client.api(ConfigMap, "default").patch("web", {"data": {"c": "3"}})
    await apply(api_server, file, CONFIG.replace(", b: '2'", ""))
    assert (await stored(api_server, "cm/web"))["data"] == {"a": "1", "c": "3"}


async def test_an_object_without_the_annotation_is_changed_with_a_warning(api_server: APIServer, file: Path) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="web"), data={"a": "0", "z": "9"}))
    result = await apply(api_server, file, CONFIG)
    assert (result.code, result.out) == (0, "configmap/web configured\n")
    assert result.err.startswith(f"Warning: resource configmaps/web is missing the {LAST_APPLIED} annotation")
    found = await stored(api_server, "cm/web")
    assert found["data"] == {"a": "1", "b": "2", "z": "9"}
    assert LAST_APPLIED in found["metadata"]["annotations"]


async def test_an_annotation_that_is_no_json_is_an_error_and_nothing_is_changed(
    api_server: APIServer, file: Path
) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="web", annotations={LAST_APPLIED: "[1"})))
    result = await apply(api_server, file, CONFIG)
    assert (result.code, result.out) == (1, "")
    assert result.err.endswith(
        f"the annotation {LAST_APPLIED} of configmap/web is not the JSON of an object: remove it\n"
    )


@attrs.define(eq=False)
class BusyTransport(httpx.AsyncBaseTransport):
    """Another program changes the object before each of the first patches, or creates it before a creation."""

    inner: httpx.AsyncBaseTransport
    change: Callable[[], object]
    times: int

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method in ("PATCH", "POST") and self.times:
            self.times -= 1
            self.change()
        return await self.inner.handle_async_request(request)


@pytest.mark.parametrize(("times", "code"), [(4, 0), (5, 1)])
async def test_a_change_that_collides_with_another_is_made_again(
    api_server: APIServer, file: Path, autojump_clock: object, times: int, code: int
) -> None:
    await apply(api_server, file, CONFIG)
    write(file, CONFIG.replace("'2'", "'3'"))
    count = itertools.count()

    def change() -> None:
        config = api_server.get(ConfigMap, "web", namespace="default")
        api_server.replace(attrs.evolve(config, data={**config.data, "other": str(next(count))}))

    transport = BusyTransport(api_server.http_transport(), change, times)
    arguments = ["-s", api_server.config.server, "apply", "-f", str(file)]
    out, err = io.StringIO(), io.StringIO()
    assert await run_command(arguments, out, err, {}, opener_of(transport)) == code
    expected = {"a": "1", "b": "2" if code else "3", "other": str(times - 1)}
    assert (await stored(api_server, "cm/web"))["data"] == expected
    assert err.getvalue().startswith('Error from server (Conflict): error when patching "web.yaml": ' if code else "")


async def test_an_object_that_is_created_at_the_same_moment_is_changed(api_server: APIServer, file: Path) -> None:
    write(file, CONFIG)
    other = ConfigMap(metadata=ObjectMeta(name="web", annotations={LAST_APPLIED: "{}"}), data={"other": "1"})
    transport = BusyTransport(api_server.http_transport(), lambda: api_server.create(other), 1)
    arguments = ["-s", api_server.config.server, "apply", "-f", str(file)]
    out = io.StringIO()
    assert await run_command(arguments, out, out, {}, opener_of(transport)) == 0
    assert out.getvalue() == "configmap/web configured\n"
    assert (await stored(api_server, "cm/web"))["data"] == {"a": "1", "b": "2", "other": "1"}


async def test_a_version_in_the_manifest_is_a_condition(api_server: APIServer, file: Path) -> None:
    await apply(api_server, file, CONFIG)
    old = CONFIG.replace("name: web", "name: web, resourceVersion: '1'").replace("'2'", "'3'")
    result = await apply(api_server, file, old)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith('Error from server (Conflict): error when patching "web.yaml": ')


async def test_a_dry_run_changes_nothing_and_says_so(api_server: APIServer, file: Path) -> None:
    for where, suffix in (("client", "dry run"), ("server", "server dry run")):
        result = await apply(api_server, file, CONFIG, f"--dry-run={where}")
        assert (result.code, result.out) == (0, f"configmap/web created ({suffix})\n")
    assert (await run(api_server, "get", "cm", "web")).code == 1
    await apply(api_server, file, CONFIG)
    for where in ("client", "server"):
        result = await apply(api_server, file, CONFIG.replace("'2'", "'3'"), f"--dry-run={where}", "-o", "json")
        assert json.loads(result.out)["data"]["b"] == "3"
    assert (await stored(api_server, "cm/web"))["data"]["b"] == "2"


async def test_several_objects_are_printed_as_a_list(api_server: APIServer, file: Path) -> None:
    result = await apply(api_server, file, f"{CONFIG}---\n{CONFIG.replace('name: web', 'name: b')}", "-o", "yaml")
    found = yaml.safe_load(result.out)
    assert (found["kind"], [each["metadata"]["name"] for each in found["items"]]) == ("List", ["web", "b"])
    result = await apply(api_server, file, CONFIG, "-o", "name")
    assert result.out == "configmap/web\n"


async def test_namespaces_and_definitions_come_first(api_server: APIServer, file: Path) -> None:
    website = "apiVersion: example.com/v1\nkind: Website\nmetadata: {name: a, namespace: shop}\nspec: {x: [1]}\n"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    result = await apply(api_server, file, "---\n".join([website, DEFINITION, namespace]))
    assert result.err == ""
    assert [line.split()[0] for line in result.out.splitlines()] == [
        "namespace/shop",
        "customresourcedefinition.apiextensions.k8s.io/websites.example.com",
        "website.example.com/a",
    ]
    result = await apply(api_server, file, website.replace("[1]", "[2]"), "-n", "shop")
    assert result.out == "website.example.com/a configured\n"


async def test_the_server_applies_on_request_and_says_who_has_other_values(api_server: APIServer, file: Path) -> None:
    result = await apply(api_server, file, CONFIG, "--server-side")
    assert (result.code, result.out) == (0, "configmap/web serverside-applied\n")
    other = CONFIG.replace("'2'", "'3'")
    result = await apply(api_server, file, other, "--server-side", "--field-manager=other")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith('error: Apply failed with 1 conflict: conflict with "kubectl": .data.b\nPlease review')
    result = await apply(api_server, file, other, "--server-side", "--field-manager=other", "--force-conflicts")
    assert (result.code, result.out) == (0, "configmap/web serverside-applied\n")
    both = CONFIG.replace("'2'", "'4'").replace("'1'", "'5'")
    result = await apply(api_server, file, both, "--server-side", "--field-manager=other2")
    assert (
        '3 conflicts: conflicts with "kubectl":\n- .data.a\nconflicts with "other":\n- .data.a\n- .data.b\n'
        in result.err
    )


async def test_what_the_client_has_applied_is_handed_over_to_the_server(api_server: APIServer, file: Path) -> None:
    await apply(api_server, file, CONFIG)
    assert (await apply(api_server, file, CONFIG, "--server-side")).code == 0
    metadata = (await stored(api_server, "cm/web"))["metadata"]
    managers = {(entry["manager"], entry["operation"]) for entry in metadata["managedFields"]}
    assert managers == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}
    assert LAST_APPLIED in metadata["annotations"]
    await apply(api_server, file, CONFIG.replace("a: '1', ", ""), "--server-side")
    assert (await stored(api_server, "cm/web"))["data"] == {"b": "2"}


def test_fields_of_two_managers_are_united() -> None:
    one = {"f:a": {}, "f:b": {"f:c": {}}, "f:d": {".": {}, "f:e": {}}}
    other = {"f:a": {"f:x": {}}, "f:b": {"f:c": {}, "f:y": {}}, "f:z": {}}
    assert unite_fields(one, other) == {
        "f:a": {".": {}, "f:x": {}},
        "f:b": {"f:c": {}, "f:y": {}},
        "f:d": {".": {}, "f:e": {}},
        "f:z": {},
    }


async def test_several_errors_are_a_line_each(api_server: APIServer, file: Path) -> None:
    bad = CONFIG.replace("name: web", "name: Bad")
    result = await apply(api_server, file, bad)
    assert result.err.startswith('The ConfigMap "Bad" is invalid: metadata.name: Invalid value: "Bad": ')
    unknown = "apiVersion: x.io/v1\nkind: Foo\nmetadata: {name: a}\n"
    result = await apply(api_server, file, f"{bad}---\n{unknown}")
    assert result.code == 1
    first, second, third = result.err.splitlines()
    assert first.startswith('resource mapping not found for name: "a"')
    assert second == "ensure CRDs are installed first"
    assert third.startswith('Error from server (Invalid): error when creating "web.yaml": ConfigMap "Bad" is invalid: ')


async def test_a_field_that_does_not_exist_is_named_and_no_secret_is_shown(api_server: APIServer, file: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\nstringData: {password: hunter1}\n"
    await apply(api_server, file, secret)
    wrong = secret.replace("hunter1", "hunter2") + "stringDta: {x: hunter3}\n"
    result = await apply(api_server, file, f"{CONFIG}---\n{wrong}")
    cause = 'patch: Invalid value: "…": strict decoding error: unknown field "stringDta"'
    assert (result.code, result.out) == (1, "configmap/web created\n")
    assert result.err == f'The request is invalid: error when patching "web.yaml": {cause}\n'
    result = await apply(api_server, file, f"{wrong}---\n{CONFIG.replace('name: web', 'name: Bad')}")
    first, second = result.err.splitlines()
    assert first == f'The request is invalid: error when patching "web.yaml": {cause}'
    assert second.startswith('Error from server (Invalid): error when creating "web.yaml": ')


async def test_a_rejected_object_does_not_keep_the_others(api_server: APIServer, file: Path) -> None:
    missing = CONFIG.replace("name: web", "name: web, namespace: nope")
    result = await apply(api_server, file, f"{missing}---\n{CONFIG}")
    assert (result.code, result.out) == (1, "configmap/web created\n")
    assert result.err == ('Error from server (NotFound): error when creating "web.yaml": namespaces "nope" not found\n')


@pytest.mark.parametrize("mode", ["", "--server-side"])
async def test_what_is_not_in_the_files_any_more_is_pruned(api_server: APIServer, file: Path, mode: str) -> None:
    api_server.create(ConfigMap(metadata=ObjectMeta(name="other", labels={"app": "web"})))
    flags = [mode] if mode else []
    second = CONFIG.replace("name: web", "name: second")
    await apply(api_server, file, f"{CONFIG}---\n{second}", *flags)
    result = await apply(api_server, file, CONFIG, *flags, "--prune", "-l", "app=web", "--dry-run=server")
    assert result.out.endswith("configmap/second pruned (server dry run)\n")
    result = await apply(api_server, file, CONFIG, *flags, "--prune", "-l", "app=web")
    done = "serverside-applied" if mode else "unchanged"
    assert (result.code, result.out) == (0, f"configmap/web {done}\nconfigmap/second pruned\n")
    names = (await run(api_server, "get", "cm", "-o", "name")).out.split()
    assert names == ["configmap/other", "configmap/web"]


async def test_only_the_kinds_of_the_allowlist_are_pruned(api_server: APIServer, file: Path) -> None:
    await apply(api_server, file, CONFIG)
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
    prune = ["--prune", "--all", "--prune-allowlist=core/v1/Secret"]
    assert (await apply(api_server, file, secret, *prune)).out == "secret/s created\n"
    result = await apply(api_server, file, secret, *prune[:2], "--prune-allowlist=v1/Foo")
    assert result.err == "error: invalid GroupVersionKind format: v1/Foo, please follow <group/version/kind>\n"
    assert (await apply(api_server, file, secret, *prune[:2])).out == "secret/s unchanged\nconfigmap/web pruned\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], ""),
        (["-n", "default", "--prune-allowlist=core/v1/Secret"], ""),
        (
            ["-n", "default"],
            (
                "Warning: --namespace does not limit what is pruned of Namespaces and PersistentVolumes; "
                "--prune-allowlist names the kinds\n"
            ),
        ),
    ],
    ids=["without a namespace", "with an allowlist", "with a namespace"],
)
async def test_a_namespace_that_is_no_limit_for_pruning_is_a_warning(
    flags: list[str], expected: str, api_server: APIServer, file: Path
) -> None:
    result = await apply(api_server, file, CONFIG, "--prune", "-l", "app=web", *flags)
    assert (result.code, result.err.partition("Warning: v1 Endpoints is deprecated")[0]) == (0, expected)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "error: must specify one of -f and -k\n"),
        (["-f", "web.yaml", "--force-conflicts"], "error: --force-conflicts only works with --server-side\n"),
        (
            ["-f", "web.yaml", "--server-side", "--dry-run=client"],
            "error: --dry-run=client doesn't work with --server-side (did you mean --dry-run=server instead?)\n",
        ),
        (["-f", "nope.yaml"], 'error: the path "nope.yaml" does not exist\n'),
        (
            ["-f", "https://example.com/a.yaml"],
            "error: https://example.com/a.yaml: URLs are not supported; pipe the output of `curl -fsSL URL` into",
        ),
        (
            ["-k", "."],
            "error: -k is not supported; pipe the output of `kubectl kustomize DIRECTORY` into -f -\n",
        ),
        (["-f", "web.yaml", "-n", "nope"], 'Error from server (NotFound): error when creating "web.yaml": '),
        (
            ["-f", "web.yaml", "--prune"],
            "error: all resources selected for prune without explicitly passing --all. To prune all",
        ),
    ],
)
async def test_wrong_flags_are_errors_of_one_line(
    api_server: APIServer, file: Path, arguments: list[str], error: str
) -> None:
    write(file, CONFIG)
    result = await run(api_server, "apply", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (f"{CONFIG}---\nkind: X\n", "error: web.yaml:6:1: a manifest has no apiVersion: add one, such as apps/v1\n"),
        ("a: [\n", "error: web.yaml:2:1: "),
        ("# nothing\n", "error: web.yaml: contains no manifests: write at least one document\n"),
        (
            "apiVersion: x.io/v1\nkind: Foo\nmetadata: {name: a}\n",
            'error: resource mapping not found for name: "a" namespace: "" from "web.yaml": no matches for kind "Foo"',
        ),
        (
            CONFIG.replace("name: web", "name: web, namespace: a"),
            'error: the namespace from the provided object "a" does not match the namespace "default". You must pass',
        ),
        (
            CONFIG.replace("name: web", "generateName: web-"),
            "error: web.yaml:1:1: the ConfigMap has only a generateName",
        ),
        (f"{CONFIG}---\n{CONFIG}", "error: web.yaml:6:1: ConfigMap web"),
    ],
    ids=["no kind", "no yaml", "empty", "unknown kind", "another namespace", "generated name", "twice"],
)
async def test_a_wrong_file_is_a_line_with_its_place(api_server: APIServer, file: Path, text: str, error: str) -> None:
    result = await apply(api_server, file, text, "-n", "default")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(error)


async def test_directories_patterns_and_standard_input_are_read(
    api_server: APIServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("sub/a.yaml", "sub/inner/b.yaml", "sub/c.json"):
        name = Path(place).stem
        write(Path(place), json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}))
    empty = await run(api_server, "apply", "-f", ".")
    assert (
        empty.err
        == "error: .: the directory contains no file *.json, *.yaml, *.yml, or use -R for the directories in it\n"
    )
    assert (await run(api_server, "apply", "-f", "sub")).out == "secret/a created\nsecret/c created\n"
    assert (await run(api_server, "apply", "-f", "sub", "-R")).out.count("\n") == 3
    assert (await run(api_server, "apply", "-f", "sub/*.json,sub/a.yaml")).out.split()[::2] == ["secret/c", "secret/a"]
    for text, code, out, err in (
        (CONFIG, 0, "configmap/web created\n", ""),
        ("a: 1", 1, "", "error: STDIN: line 1, column 1: a manifest has no apiVersion: add one, such as apps/v1\n"),
    ):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        result = await run(api_server, "apply", "-f", "-")
        assert (result.code, result.out, result.err) == (code, out, err)


async def test_get_and_describe_take_files(api_server: APIServer, file: Path) -> None:
    api_server.create(Namespace(metadata=ObjectMeta(name="other")))
    await apply(api_server, file, f"{CONFIG}---\n{DEPLOYMENT}")
    assert (await run(api_server, "get", "-f", "web.yaml", "-o", "name")).out == "configmap/web\ndeployment.apps/web\n"
    assert (await run(api_server, "describe", "-f", "web.yaml")).out.count("Namespace:") == 2
    result = await run(api_server, "get", "-f", "web.yaml", "-n", "other")
    assert result.err.splitlines()[0] == 'Error from server (NotFound): configmaps "web" not found'
    result = await run(api_server, "get", "cm", "-f", "web.yaml")
    assert result.err.startswith("error: when paths, URLs, or stdin is provided as input")

"""``webhooks manifests``: objects that can be applied as they are printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
import yaml

from tests.support.cli import run_alone
from trioformer.testing import APIServer

DECLARATION = "examples.website_webhooks:webhooks"
PLACE = ("--service", "website-webhooks", "--namespace", "websites")
MODULE = """
from trioformer.models.core_v1 import Pod
from trioformer.webhooks import Webhooks

async def check(request): ...

webhooks = Webhooks(validate={Pod: check})
"""


async def test_a_definition_with_its_conversion_and_the_configurations_are_printed(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(trustme.CA().cert_pem.bytes())
    result = await run_alone("webhooks", "manifests", DECLARATION, *PLACE, "--port=8443", "--ca-file", str(ca))
    assert (result.code, result.err) == (0, "")
    definition, validating, mutating = yaml.safe_load_all(result.out)
    assert [each["name"] for each in definition["spec"]["versions"]] == ["v1alpha1", "v1"]
    config = definition["spec"]["conversion"]["webhook"]["clientConfig"]
    assert config["service"]["path"] == "/convert/example.com/websites"
    service = {"name": "website-webhooks", "namespace": "websites", "port": 8443}
    for obj, verb in ((validating, "validate"), (mutating, "mutate")):
        (webhook,) = obj["webhooks"]
        assert webhook["clientConfig"]["service"] == {**service, "path": f"/{verb}/example.com/websites"}
        assert webhook["clientConfig"]["caBundle"] == config["caBundle"]
    server = APIServer()
    for each in (definition, validating, mutating):
        server.create(each)


async def test_a_declaration_in_the_current_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hooks_of_a_test.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    result = await run_alone("webhooks", "manifests", "hooks_of_a_test:webhooks", *PLACE)
    assert result.out.count("kind: ") == 1
    assert "path: /validate/core/pods" in result.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "write `webhooks manifests MODULE:VARIABLE`"),
        (("manifests",), "write `webhooks manifests MODULE:VARIABLE`"),
        (("install", DECLARATION), "write `webhooks manifests MODULE:VARIABLE`"),
        (("manifests", DECLARATION, "--namespace", "a"), "--service and --namespace are required"),
        (("manifests", DECLARATION, "--service", "a"), "--service and --namespace are required"),
        (("manifests", "no_such_module:webhooks", *PLACE), "no_such_module cannot be imported"),
        (("manifests", ":webhooks", *PLACE), "the module cannot be imported"),
        (("manifests", "examples.website_webhooks", *PLACE), "there are no Webhooks with this name"),
        (("manifests", "examples.website_webhooks:check", *PLACE), "there are no Webhooks with this name"),
        (("manifests", DECLARATION, *PLACE, "--ca-file", "no.crt"), "no.crt cannot be read: No such file"),
        (("manifests", DECLARATION, *PLACE, "--ca-file", __file__), f"{__file__}: it must contain certificates"),
        (("manifests", DECLARATION, *PLACE, "--port", "x"), "--port"),
        (("manifests", DECLARATION, "--service", "A", "--namespace", "a"), "--service: it must be a DNS label"),
    ],
)
async def test_a_mistake_is_one_line(arguments: tuple[str, ...], problem: str) -> None:
    result = await run_alone("webhooks", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")
    assert problem in result.err.splitlines()[0]

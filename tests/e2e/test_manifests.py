"""Manifests on a real cluster: what is loaded and applied is what kubectl would have applied."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import trio

from tests.e2e.manifest_set import TOTAL, write_manifests
from trioformer import Client, open_client
from trioformer.client import ClientOptions
from trioformer.errors import ManifestsFailedError
from trioformer.manifests import (
    ApplySet,
    Manifest,
    Readiness,
    apply_manifests,
    delete_manifests,
    load_manifests,
    wait_for_manifests,
)
from trioformer.models import resource_of
from trioformer.models._kinds import builtin_resources
from trioformer.models.core_v1 import ConfigMap
from trioformer.testing import ControlPlane

MANAGER = "e2e"
# Nobody serves it, so it never becomes ready.
NEVER_READY = ("APIService",)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_manifests(tmp_path / "set")
    return tmp_path / "set"


async def kubectl(assets: Path, cluster: ControlPlane, *args: str) -> tuple[int, str, str]:
    done = await trio.run_process(
        [str(assets / "kubectl"), "--kubeconfig", str(cluster.kubeconfig), *args],
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def unexpected(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line and "deprecated" not in line]


async def check_no_difference(assets: Path, cluster: ControlPlane, directory: Path) -> None:
    for options in (["--server-side", f"--field-manager={MANAGER}"], ["--server-side=false"]):
        code, output, errors = await kubectl(assets, cluster, "diff", "-R", "-f", str(directory), *options)
        assert (code, output, unexpected(errors)) == (0, "", [])


def test_the_set_has_every_builtin_kind_that_can_be_applied(directory: Path) -> None:
    manifests = load_manifests(directory, recursive=True)
    assert len(manifests) == TOTAL
    found = {resource_of(type(manifest.object)).gvk for manifest in manifests}
    assert {info.gvk for info in builtin_resources() if "patch" in info.verbs} - found == set()


async def test_200_manifests_are_applied_and_kubectl_finds_no_difference(
    assets: Path, cluster: ControlPlane, directory: Path
) -> None:
    manifests = load_manifests(directory, recursive=True)
    async with open_client(
        kubeconfig=cluster.kubeconfig, options=ClientOptions(warning_handler=lambda _: None)
    ) as client:

        async def apply(*, force: bool = False) -> Counter[str]:
            results = await apply_manifests(client, manifests, field_manager=MANAGER, force=force)
            return Counter(result.action for result in results)

        async def delete() -> Counter[str]:
            with trio.fail_after(120):
                return Counter(result.action for result in await delete_manifests(client, manifests, wait=True))

        assert await apply() == {"created": TOTAL}
        await wait_until_ready(client, manifests)  # until then, controllers change the status between kubectl's reads
        await check_no_difference(assets, cluster, directory)
        assert await apply() == {"unchanged": TOTAL}
        await check_no_difference(assets, cluster, directory)
        assert await delete() == {"deleted": TOTAL}
        assert await delete() == {"absent": TOTAL}

        # kubectl knows a custom kind only after it has begun: the second call applies the objects.
        for _ in range(2):
            code, _, errors = await kubectl(assets, cluster, "apply", "-R", "-f", str(directory))
        assert (code, unexpected(errors)) == (0, [])
        # As for kubectl's own --server-side: what is stored in another form, such as 1 as "1", is a conflict.
        with pytest.raises(ManifestsFailedError, match='conflict with "kubectl-client-side-apply"'):
            await apply()
        assert await apply(force=True) == {"unchanged": TOTAL}
        await check_no_difference(assets, cluster, directory)
        assert (await delete())["deleted"] == TOTAL


async def test_sets_have_the_same_ids_as_kubectls_and_neither_prunes_the_others(
    assets: Path, cluster: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_APPLYSET", "true")
    file = tmp_path / "a.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: member, namespace: default}}")

    async def kubectl_apply(name: str) -> tuple[int, str, str]:
        options = ["--server-side", "--prune", f"--applyset=configmap/{name}", "-n", "default"]
        return await kubectl(assets, cluster, "apply", "-f", str(file), *options)

    ours, theirs = (ApplySet(name, "default", kind="ConfigMap") for name in ("ours", "theirs"))
    async with open_client(kubeconfig=cluster.kubeconfig) as client:
        config_maps = client.api(ConfigMap, "default")
        assert (await kubectl_apply("theirs"))[0] == 0
        parent = await config_maps.get("theirs")
        assert parent.metadata.labels == {"applyset.kubernetes.io/id": theirs.id("default")}
        with pytest.raises(ManifestsFailedError, match=r"belongs to another tool, kubectl/v"):
            await apply_manifests(client, load_manifests(file), field_manager=MANAGER, prune=theirs)
        with pytest.raises(ManifestsFailedError, match=f"member of another ApplySet, {theirs.id('default')}"):
            await apply_manifests(client, load_manifests(file), field_manager=MANAGER, prune=ours)
        await config_maps.delete("member")
        await apply_manifests(client, load_manifests(file), field_manager=MANAGER, prune=ours)
        code, _, errors = await kubectl_apply("ours")
        assert code == 1
        assert 'managed by tooling "trioformer" instead of "kubectl"' in errors
        for name in ("ours", "theirs", "member"):
            await config_maps.delete(name)


async def wait_until_ready(client: Client, manifests: tuple[Manifest, ...]) -> None:
    waited = [manifest for manifest in manifests if manifest.object.kind not in NEVER_READY]
    missing = dict.fromkeys(map(str, waited), "unknown")

    def progress(manifest: Manifest, readiness: Readiness) -> None:
        missing[str(manifest)] = readiness.message
        if readiness:
            del missing[str(manifest)]

    with trio.move_on_after(60):
        await wait_for_manifests(client, waited, on_progress=progress)
    assert missing == {}

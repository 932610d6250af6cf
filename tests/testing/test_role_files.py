"""The files with roles that ``pytest --trioformer-rbac`` compares."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioformer.testing._recording import Permission
from trioformer.testing._role_files import RoleFileError, difference, read_roles, rules_of, write_roles

FILE = """\
# The header.
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot}
---
# Why.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: robot  # a name
rules:
- apiGroups: [""]  # old
  resources: [pods]
  verbs: [get]
- apiGroups: [example.com]
  resources: [websites/finalizers]
  verbs: [update]
aggregationRule: null
"""
USED = {
    Permission("ClusterRole", "", "pods", "list"),
    Permission("ClusterRole", "", "pods", "watch"),
    Permission("Role", "coordination.k8s.io", "leases", "get", "robot"),
    Permission("Role", "coordination.k8s.io", "leases", "create"),
}


def test_only_the_rules_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(FILE)
    assert read_roles(path) == {Permission("ClusterRole", "", "pods", "get")}
    write_roles(path, USED)
    assert read_roles(path) == USED
    text = path.read_text()
    for kept in ("# The header.", "kind: ServiceAccount", "# Why.", "# a name", "websites/finalizers", "\naggregation"):
        assert kept in text
    assert "# old" not in text


def test_an_equal_role_in_other_words_is_not_a_difference(tmp_path: Path) -> None:
    path = tmp_path / "robot.yaml"
    path.write_text(
        "kind: ClusterRole\nrules:\n"
        "- {verbs: [watch], resources: [pods], apiGroups: ['']}\n- {verbs: [list], resources: [pods], apiGroups: ['']}"
    )
    found = read_roles(path)
    assert difference(path, found, {one for one in USED if one.role == "ClusterRole"}) == []
    assert difference(path, found, USED)


PERMISSIONS = st.builds(
    Permission,
    st.just("Role"),
    st.sampled_from(["", "apps"]),
    st.sampled_from(["pods", "pods/log", "secrets"]),
    st.sampled_from(["get", "list", "patch", "approve"]),
    st.sampled_from(["", "a", "b"]),
) | st.builds(Permission, st.just("Role"), st.just(""), st.just(""), st.just("get"), st.sampled_from(["/a", "/b/*"]))


@given(st.sets(PERMISSIONS))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, used: set[Permission]) -> None:
    path = tmp_path_factory.mktemp("roles") / "role.yaml"
    write_roles(path, used)
    assert read_roles(path) == used
    assert len(rules_of(used)) <= len(used)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "does not exist"),
        ("kind: Role\n---\nkind: Role\n", "several documents of the kind Role"),
        ("kind: [", "is not YAML"),
    ],
)
def test_a_file_without_a_role_is_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "role.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(RoleFileError, match=said) as caught:
        read_roles(path)
    assert "\n" not in str(caught.value)

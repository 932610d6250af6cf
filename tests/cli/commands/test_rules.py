"""The rules of RBAC, in kubectl's form and order."""

from __future__ import annotations

from trioformer.cli.commands._rules import compact_rules


def test_the_verbs_of_a_resource_are_together_and_those_of_urls_are_not() -> None:
    rules = [
        {"apiGroups": ["", "apps"], "resources": ["pods", "deployments/scale"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["watch", "get"]},
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["b", "a"], "verbs": ["get"]},
        {"nonResourceURLs": ["/healthz", "/version"], "verbs": ["get"]},
        {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    ]
    assert compact_rules(rules) == [
        (("*.*", "", ""), ["*"]),
        (("pods", "", ""), ["get", "watch"]),
        (("", "/healthz", ""), ["get"]),
        (("", "/healthz", ""), ["get"]),
        (("", "/version", ""), ["get"]),
        (("deployments/scale", "", ""), ["get"]),
        (("secrets", "", "a"), ["get"]),
        (("secrets", "", "b"), ["get"]),
        (("deployments.apps/scale", "", ""), ["get"]),
        (("pods.apps", "", ""), ["get"]),
    ]

"""Where other releases of kube-apiserver differ from the one that the tables and the recorded results are from."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import Final

_DIFFERENT: Final = """
    1.34 1.35 1.37  test_the_documents_of_*
    1.34 1.35 1.37  test_the_columns_of_all_kinds_are_equal
    1.34 1.35 1.37  test_the_recorded_cells_are_those_of_a_server*
    1.34 1.35 1.37  test_a_create_with_a_wrong_type_fails_alike
    1.34 1.35 1.37  test_new_objects_have_the_same_fields_on_both_servers
    1.34 1.35 1.37  test_a_new_cluster_has_the_same_objects_on_both_servers*clusterrole*
    1.34 1.35       test_random_objects_of_random_schemas_have_the_same_results
    1.34 1.35       test_the_built_in_kinds_are_discovered_as_the_table_says*
    1.34 1.35       test_each_step_of_a_case_is_as_recorded*-an update of the status]
    1.34            test_the_requests_for_a_kind_have_the_responses_of_kube_apiserver*
    1.34            test_the_server_evaluates_the_rules_of_the_class
    1.34            test_a_new_cluster_has_the_same_objects_on_both_servers?roles.*
    1.34            test_each_step_of_a_flow_is_as_recorded*rollout]
    1.34            test_each_step_of_a_flow_is_as_recorded*-recreate]
    1.34            test_a_disruption_budget_is_asked_before_an_eviction*
    1.34            test_texts_have_a_format_for_both_servers_or_for_none
    1.34            test_selectors_select_what_the_library_says*
    1.37            test_each_step_of_a_flow_is_as_recorded*-ordered]
    1.37            test_each_step_of_a_flow_is_as_recorded*-parallel]
    1.37            test_an_invalid_review_is_rejected*SubjectAccessReview-spec*
    1.34            Pod/minimal spec.containers.0.env=*name: A, valueFrom: {}}]
    1.34 1.35       Service/cluster metadata.name=a.b
    1.34 1.35       Service/cluster metadata.name=1a & spec.ports=-
    1.37            StatefulSet/db spec.*
    1.37            RoleBinding/readers roleRef.*
    1.34 1.35       *"openAPIV3Schema": *"a": {"type": "integer",… (326)
    1.37            *"openAPIV3Schema": *"a": {"type": "array", "… (396)
    1.34            *"configmaps", *"labels": *
    1.34            *"configmaps", *"annotations": *
    1.34            ?"namespaces", {"name": "xxx*
    1.37            *"configmaps", *"ownerReferences": *
    1.34 1.35       {"level": 2.5}
    1.34 1.35       {"size": 10.5}
    1.34 1.35       {"size": 9223372036854775808}
    1.34 1.35       {"i32": *
    1.34 1.35       {"f": 1e+39}
    1.34 1.35       {"portBounds": 1.5}
    1.34            {"k8s": *
"""
"""The releases, and the test or the case in a test."""
_RELEASE: Final = os.environ.get("TRIOFORMER_E2E_KUBERNETES", "").removeprefix("v").rpartition(".")[0]


def differs(name: str) -> bool:
    """Return whether a test, or a case in a test, has another result on the release that this run is for."""
    rows = (row.strip().split("  ", 1) for row in _DIFFERENT.strip().splitlines())
    return any(_RELEASE in releases.split() and fnmatchcase(name, pattern.strip()) for releases, pattern in rows)

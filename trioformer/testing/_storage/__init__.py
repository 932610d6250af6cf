"""The objects, revisions and rules of the embedded API server, without HTTP (private).

- ``_storage.py``: versioned objects, revisions, history and compaction, as in etcd
- ``_registry.py``: the rules for creating, updating and deleting objects
- ``_namespaces.py``: the rules for namespaces
- ``_locations.py``: the checks that an object matches the path of its request
- ``_admission.py``: admission webhooks
- ``_conversion_webhooks.py``: the conversion of custom objects by webhooks
- ``_webhook_calls.py``: the calls of webhooks that a request needs, and their answers
- ``_metadata.py``: the metadata fields that only the server sets
- ``_object_meta.py``: the rules for names, labels, annotations, owners and finalizers
- ``_field_checks.py``: the removal of unknown and duplicate fields
- ``_defaults.py``, ``_default_rules.py``: the defaults of built-in kinds.  Most of them are in ``defaults.txt``
- ``_strategies.py``: the fields of built-in kinds that depend on other objects or on the server
- ``_validation.py``: the validation of objects before they are stored
- ``_bootstrap.py``: the objects of a new cluster, which are in ``bootstrap``
- ``_deletion.py``: the preconditions and the result of a delete
- ``_patching.py``: patch requests, merge patch and JSON patch
- ``_strategic.py``: strategic merge patch
- ``_apply.py``: requests for server-side apply
- ``_tracking.py``: the managers of objects, and server-side apply
- ``_managed_fields.py``: the owners of fields, and conflicts
- ``_field_sets.py``: sets of fields, in the format of managedFields
- ``_typed_values.py``: the merge and the comparison of values of known types
- ``_typed_problems.py``: errors of values that do not fit their type
- ``_go_formats.py``: values in Go's formats, for error messages
- ``_go_types.py``: the check that values have the Go types of their fields
- ``_field_types.py``: the types of fields.  The types of built-in kinds are in ``field_types.json``
- ``_selection.py``: label and field selectors
- ``_kinds.py``: the served kinds and their differences
- ``_release.py``: the tables that are taken from kube-apiserver
- ``_conversions.py``: kinds that several versions or groups share
- ``_custom.py``: CustomResourceDefinitions and their kinds
- ``_definitions.py``, ``_definition_schemas.py``, ``_structural.py``: the validation of CustomResourceDefinitions and
  their schemas
- ``_schemas.py``: parsed schemas, pruning and defaults
- ``_schema_validation.py``, ``_schema_formats.py``, ``_patterns.py``: the validation of custom objects by their schema
- ``_custom_objects.py``: the validation of unique items and embedded objects
- ``_field_errors.py``: field errors, with the messages of kube-apiserver
- ``_status.py``: errors as Status objects
- ``_values.py``: values at paths in objects
- ``_clock.py``: the clock for timestamps in objects

If a request fails, ``APIStatusError`` is raised with the status code of kube-apiserver.
The other modules of ``trioformer.testing`` import these modules directly.
"""

from __future__ import annotations

__all__: list[str] = []

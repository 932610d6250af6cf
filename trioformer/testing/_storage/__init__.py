"""Private: the embedded API server's objects, revisions and rules, without HTTP.

- ``_storage.py``: versioned objects, revisions, history and compaction, as etcd has them
- ``_registry.py``: creates, updates and deletes objects as kube-apiserver does
- ``_metadata.py``: the types of metadata, server-set fields and finalizers
- ``_object_meta.py``: the rules for names, labels, annotations, owners and finalizers
- ``_field_checks.py``: unknown and duplicate fields
- ``_validation.py``: validates objects before they are stored
- ``_deletion.py``: preconditions and result of a delete
- ``_patching.py``: requests for other patches; merge patch and JSON patch
- ``_strategic.py``: strategic merge patch
- ``_apply.py``: requests for server-side apply
- ``_tracking.py``: applies configurations, and keeps the managers of objects
- ``_managed_fields.py``: the owners of fields, and conflicts
- ``_field_sets.py``: sets of fields, as in managedFields
- ``_typed_values.py``: merges and compares values of known types
- ``_typed_problems.py``: errors of values that do not fit their type
- ``_go_formats.py``: values in Go's formats, for errors
- ``_field_types.py``: the types of fields, of built-in kinds from ``_field_types.json``
- ``_selection.py``: label and field selectors
- ``_kinds.py``: the served kinds and their differences
- ``_custom.py``: the kinds of CustomResourceDefinitions
- ``_definitions.py``, ``_definition_schemas.py``, ``_structural.py``: the rules for them and their schemas
- ``_schemas.py``: parsed schemas: pruning and defaults
- ``_schema_validation.py``, ``_schema_formats.py``, ``_patterns.py``: the values of custom objects
- ``_custom_objects.py``: unique items, and objects in custom objects
- ``_field_errors.py``: errors of fields, with the texts of kube-apiserver
- ``_status.py``: errors as Status objects
- ``_clock.py``: the time for timestamps in objects

Requests that fail raise ``APIStatusError`` with the code of kube-apiserver.
The other modules of ``trioformer.testing`` import these modules directly.
"""

from __future__ import annotations

__all__: list[str] = []

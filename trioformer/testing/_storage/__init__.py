"""Private: the embedded API server's objects, revisions and rules, without HTTP.

- ``_storage.py``: revisions, history, compaction
- ``_registry.py``: creates, updates and deletes objects as kube-apiserver does
- ``_metadata.py``, ``_deletion.py``, ``_patching.py``: the rules for metadata, deletion and patches
- ``_kinds.py``, ``_custom.py``: which kinds there are; those of CustomResourceDefinitions
- ``_selection.py``: selectors
- ``_status.py``: errors as Status objects
- ``_clock.py``: the time in objects
"""

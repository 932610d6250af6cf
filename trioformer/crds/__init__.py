"""CustomResourceDefinitions from classes: schemas with defaults, bounds and rules, versions, and their installation.

The class of a custom resource contains everything in its definition::

    from trioformer.crds import Schema, crd_of, custom_resource, install_crds, resource_part

- ``_decorators.py``: :func:`custom_resource` and :func:`resource_part`, which make the classes
- ``_facts.py``: :class:`Schema`, :class:`Rule`, :class:`PrinterColumn` and other additions to the fields
- ``_schemas.py``: the structural schema of a class and of each type of field
- ``_constraints.py``: adds bounds and rules to a schema, and checks defaults against them
- ``_sources.py``: the lines and descriptions of fields, from the source of their class
- ``_definition.py``: :func:`crd_of`, the versions of a kind, its columns and subresources
- ``_install.py``: :func:`install_crds`, which waits until the server serves the kinds
- ``__main__.py``: ``python -m trioformer.crds module:Class``, which prints manifests
"""

from __future__ import annotations

from ._decorators import custom_resource as custom_resource
from ._decorators import resource_part as resource_part
from ._definition import crd_of as crd_of
from ._facts import PrinterColumn as PrinterColumn
from ._facts import Rule as Rule
from ._facts import ScaleSubresource as ScaleSubresource
from ._facts import Schema as Schema
from ._install import install_crds as install_crds
from ._install import wait_until_served as wait_until_served

__all__ = [
    "PrinterColumn",
    "Rule",
    "ScaleSubresource",
    "Schema",
    "crd_of",
    "custom_resource",
    "install_crds",
    "resource_part",
    "wait_until_served",
]

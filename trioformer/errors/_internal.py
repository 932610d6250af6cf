"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._base import ConfigProblem as ConfigProblem
from ._cache import NotSynced as NotSynced
from ._manifests import ManifestFailure as ManifestFailure
from ._manifests import ManifestProblem as ManifestProblem
from ._status import UNEXPECTED_SERVER_RESPONSE as UNEXPECTED_SERVER_RESPONSE
from ._status import StatusDetails as StatusDetails
from ._status import details_in as details_in

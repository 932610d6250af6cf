"""The store: changes in the order in which they arrived, and the indexed cache that they lead to.

- ``_delta_fifo.py``: :class:`DeltaFIFO`, the queue between reflector and process loop
- ``_indexer.py``: :class:`Indexer`, objects by key and by the values of index functions
- ``_lister.py``: :class:`Lister`, the read-only view of an indexer
- ``_versions.py``: the newest resourceVersion that a cache holds, and who waits for a newer one
"""

from __future__ import annotations

from ._delta_fifo import Delta as Delta
from ._delta_fifo import DeltaFIFO as DeltaFIFO
from ._delta_fifo import Deltas as Deltas
from ._delta_fifo import DeltaType as DeltaType
from ._delta_fifo import Replaced as Replaced
from ._delta_fifo import Sync as Sync
from ._indexer import NAMESPACE_INDEX as NAMESPACE_INDEX
from ._indexer import Indexer as Indexer
from ._indexer import IndexFunc as IndexFunc
from ._indexer import Staged as Staged
from ._indexer import field_index as field_index
from ._lister import Lister as Lister

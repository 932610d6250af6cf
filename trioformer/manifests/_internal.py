"""Private names that other trioformer packages import."""

from __future__ import annotations

from ._dump import dump_documents as dump_documents
from ._dump import dump_sorted as dump_sorted
from ._targets import rank_of as rank_of

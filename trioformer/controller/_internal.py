"""Names that other packages of trioformer import; not part of the public API."""

from __future__ import annotations

from ._controller import attach_observer as attach_observer
from ._controller import convert_functions as convert_functions
from ._controller import detach_observer as detach_observer
from ._controller import is_divided as is_divided
from ._controller import journal_of as journal_of
from ._current_request import CurrentRequest as CurrentRequest
from ._journal import Journal as Journal
from ._journal import JournalRecord as JournalRecord
from ._journal import as_json as as_json
from ._journal import collect_journal as collect_journal
from ._journal import describe_causes as describe_causes
from ._results import ReconcileResult as ReconcileResult

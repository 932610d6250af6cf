"""What other packages of trioformer need of this one, and users do not."""

from __future__ import annotations

from ._prune import by_selector as by_selector
from ._prune import prune_objects as prune_objects
from ._targets import CRDS as CRDS
from ._targets import Target as Target
from ._targets import find_targets as find_targets
from ._targets import rank_of as rank_of

"""The drawings of the documentation; its build makes them, from the code where they show what the code decides.

- ``_shapes.py``: boxes, arrows and texts
- ``_pipe.py``: the data path
- ``_controller.py``: the life of a controller, with its phases
- ``_election.py``: leader election, with the times of the default options
- ``_relist.py``: what a relist does
- ``_reflector.py``: the states of the reflector, from its table of transitions
- ``directive.py``: the directive ``diagram``, a Sphinx extension
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ._controller import controller
from ._election import election
from ._pipe import narrow, wide
from ._reflector import reflector
from ._relist import relist

DRAWINGS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "pipe": {"desk-only": wide, "phone-only": narrow},
    "controller": {"": controller},
    "election": {"": election},
    "relist": {"": relist},
    "reflector": {"scrolls": reflector},
}
"""The drawings of each diagram, by the class in docs/_static/trioformer.css that says where they are shown."""

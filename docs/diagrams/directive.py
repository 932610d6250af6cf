"""``.. diagram:: pipe``: a drawing in the page, with its links and in the colours of the theme."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from . import DRAWINGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)
LINK = re.compile(r'href="page:([^"]*)"')


class diagram(nodes.General, nodes.Element):  # noqa: N801  # docutils names nodes so
    """A drawing."""


class Diagram(SphinxDirective):
    """Make a drawing."""

    required_arguments = 1
    final_argument_whitespace: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        if name not in DRAWINGS:
            raise self.error(f"no diagram {name!r}; there are {', '.join(DRAWINGS)}")
        # What it shows is read from the code, which no page depends on.
        self.env.note_reread()
        return [diagram("", name=name)]


def visit(translator: HTML5Translator, node: diagram) -> None:
    """Write the drawings, with links that lead from the page that they are on."""
    builder = translator.builder

    def target(match: re.Match[str]) -> str:
        if match[1] not in builder.env.found_docs:
            logger.warning("the diagram %s links to %s, which does not exist", node["name"], match[1])
        return f'href="{builder.get_relative_uri(builder.current_docname, match[1])}"'

    for style, draw in DRAWINGS[node["name"]].items():
        svg = LINK.sub(target, draw())
        translator.body.append(f'<div class="{f"drawing {style}".strip()}" tabindex="0">{svg}</div>\n')


def leave(translator: HTML5Translator, node: diagram) -> None:
    """Do nothing: a drawing has no children."""


def setup(app: Sphinx) -> None:
    app.add_node(diagram, html=(visit, leave), text=(_skip, leave), latex=(_skip, leave), man=(_skip, leave))
    app.add_directive("diagram", Diagram)


def _skip(translator: object, node: diagram) -> None:
    raise nodes.SkipNode

"""What a page of the reference begins with: the text of the package, and a table of its names.

The docstrings of packages list their modules, for those who read the code.  A user imports from the package, so the
build leaves out what is private, and adds each public name with the first line of its docstring.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sphinx.util import logging

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

logger = logging.getLogger(__name__)

PRIVATE_ITEM = re.compile(r"- ``(_\w+(\.py|/)?|__main__\.py|\w+/)``")
UNWANTED = re.compile(
    r"trioformer(?:\.\w+)*\._\w+"  # a private module in a qualified name
    r"|(?<![\w.])_\w+(?:\.py|/)"  # a private file or folder
    r"|(?<![\w.*])_[A-Z]\w+"  # a private class
    r"|\bdocs/\S+\.rst"  # a page that is not a link
    r"|\b(?:AsyncGenerator|AbstractAsyncContextManager|AbstractContextManager)\b"  # signatures.py shows the call
    r"|<function|\bNOTHING\b|\bTypeAliasForwardRef\b"
)
"""What a page of the reference must not show."""

Describe = Callable[[str, str], str]
GROUPS = ("Functions", "Classes", "Errors", "Aliases and constants")


def without_private_modules(lines: list[str]) -> Iterator[str]:
    """Leave out the items about private modules, with the lines that continue them."""
    inside = False
    for line in lines:
        inside = bool(PRIVATE_ITEM.match(line)) or (inside and line.startswith("  "))
        if not inside:
            yield line


def with_links(line: str) -> str:
    """Make a link of the path of one of our pages."""
    return re.sub(r"\bdocs/([\w/-]+)\.rst", r":doc:`/\1`", line)


def _group(value: object) -> str:
    if isinstance(value, type):
        return "Errors" if issubclass(value, BaseException) else "Classes"
    return "Functions" if isinstance(value, types.FunctionType) else "Aliases and constants"


def _is_ours(value: object) -> bool:
    """Return whether a package defines this and does not merely import it."""
    if isinstance(value, type | types.FunctionType):
        return value.__module__.startswith("trioformer")
    return not isinstance(value, types.ModuleType)


def _first_line(text: str) -> str:
    first = inspect.cleandoc(text).partition("\n\n")[0].replace("\n", " ")
    return re.split(r"(?<=[.:])\s", first, maxsplit=1)[0].rstrip(":.") or first


def table_of(package: str, describe: Describe) -> list[str]:
    """Return the table of the public names of a package; nothing for one with few names."""
    module = importlib.import_module(package)
    # From the list, if there is one: a name may be imported on demand only.
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    values = {name: getattr(module, name) for name in names if name != "annotations"}
    public = {name: value for name, value in values.items() if _is_ours(value)}
    if len(public) < 4:
        return []
    lines = [".. list-table::", "   :class: names", "   :widths: 36 64", ""]
    for group in GROUPS:
        for name in sorted(name for name, value in public.items() if _group(value) == group):
            is_alias = group == GROUPS[-1]
            text = describe(package, name) if is_alias else (public[name].__doc__ or "")
            call = "()" if group == "Functions" else ""
            lines += [f"   * - :py:obj:`{name}{call} <{name}>`", f"     - {_first_line(text)}"]
    return ["", *lines, ""]


def packages_as_table(lines: list[str]) -> list[str]:
    """Make links of the list of packages, which is a literal block in the source."""
    found = [match for line in lines if (match := re.match(r" +(trioformer\.\w+) {2,}(.+)", line))]
    if not found:
        return lines
    texts = [line for line in lines if not re.match(r" +trioformer\.\w+ {2,}", line)]
    table = [".. list-table::", "   :class: names", "   :widths: 36 64", ""]
    for match in found:
        table += [f"   * - :py:mod:`{match[1]}`", f"     - {match[2]}"]
    place = next(index for index, line in enumerate(texts) if line.endswith("::"))
    return [*texts[:place], texts[place][:-1], "", *table, "", *texts[place + 1 :]]


def begin_page(describe: Describe) -> Callable[..., None]:
    def connect(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
        lines[:] = map(with_links, lines)
        if what == "module":
            lines[:] = without_private_modules(lines)
            if name == "trioformer":
                lines[:] = packages_as_table(lines)
            elif name.count(".") == 1:
                lines += table_of(name, describe)

    return connect


def refuse_unwanted(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warn of what users cannot use, which is an error of the build."""
    if not docname.startswith("reference/"):
        return
    for found in sorted(set(UNWANTED.findall(doctree.astext()))):
        logger.warning("%s shows %s: see docs/summaries.py", docname, found, type="trioformer", subtype="private")


def setup_with(app: Sphinx, describe: Describe) -> None:
    app.connect("autodoc-process-docstring", begin_page(describe), priority=350)
    app.connect("doctree-resolved", refuse_unwanted)

"""How the reference shows functions: as they are called.

- ``await f()`` for an async function
- ``async with f() → X`` for what returns an async context manager whose value is an ``X``; ``with`` for other ones
- ``async for … in f()`` for an async generator
- the names of aliases, such as `LabelSelectorLike`, and not what they stand for
- default values, and the values of aliases, as a program would write them

The first line of a function in the source says something else: ``async def f() -> AsyncGenerator[X]``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, get_origin

from docutils import nodes
from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _code_of(decorator: Callable[..., object]) -> object:
    """Return the code that all functions share which a decorator of contextlib has made."""
    return getattr(decorator(lambda: None), "__code__", None)


MAKES_MANAGER = {_code_of(contextlib.contextmanager): "with", _code_of(contextlib.asynccontextmanager): "async with"}
IS_MANAGER = {"AbstractContextManager": "with", "AbstractAsyncContextManager": "async with"}


def call_of(function: object) -> str:
    """Return the keywords in front of a call: "", "await", "async with", "with" or "async for … in"."""
    function = getattr(function, "__func__", function)  # of a class method
    while (keywords := MAKES_MANAGER.get(getattr(function, "__code__", None))) is None:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is None or _returns(wrapped) != _returns(function):
            break  # `start_cache` has the parameters of `open_cache`, and no block
        function = wrapped
    if keywords is not None:
        return keywords
    if inspect.iscoroutinefunction(function):
        return "await"
    if inspect.isasyncgenfunction(function):
        return "async for … in"
    return IS_MANAGER.get(re.split(r"\W", _returns(function).replace("contextlib.", ""), maxsplit=1)[0], "")


def _returns(function: object) -> str:
    return str(getattr(function, "__annotations__", {}).get("return", ""))


def aliases_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the names of the aliases of types that packages export, for ``autodoc_type_aliases``."""
    found: dict[str, str] = {}
    for package in packages:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        for name in names:
            if get_origin(getattr(module, name)) is not None:
                found.setdefault(name, f"{package}.{name}")
    return found


def _documented(signature: addnodes.desc_signature) -> object:
    found: object = importlib.import_module(signature["module"])
    for name in signature["fullname"].split("."):
        found = inspect.getattr_static(found, name)
    return found


def _value(returns: addnodes.desc_returns) -> list[nodes.Node]:
    """Return the nodes of X in ``AsyncGenerator[X, None]``; none for ``AsyncGenerator[None]``."""
    depth, found = 0, []
    for node in returns.children:
        text = node.astext()
        depth -= text == "]"
        if depth == 1 and text == ",":
            break
        if depth:
            found.append(node)
        depth += text == "["
    return [] if "".join(node.astext() for node in found) == "None" else found


def show_the_call(app: Sphinx, domain: str, objtype: str, content: addnodes.desc_content) -> None:
    """Put the keywords of the call in front of each signature, and show what it results in."""
    if domain == "py" and objtype == "data":
        _shorten_value(content.parent)
    if domain != "py" or objtype not in ("function", "method", "classmethod", "staticmethod"):
        return
    for signature in content.parent.findall(addnodes.desc_signature):
        # The entries inside have signatures as well; they have had their turn.
        if signature.parent is not content.parent or not signature.get("module"):
            continue
        call = call_of(_documented(signature))
        if not call:
            continue
        for annotation in list(signature.findall(addnodes.desc_annotation)):
            if annotation.astext().strip() == "async":
                signature.remove(annotation)
        name = next(n for n in signature.children if isinstance(n, addnodes.desc_addname | addnodes.desc_name))
        keyword = addnodes.desc_annotation("", "", addnodes.desc_sig_keyword("", call), addnodes.desc_sig_space())
        signature.insert(signature.index(name), keyword)
        if "with" not in call:
            continue
        for returns in list(signature.findall(addnodes.desc_returns)):
            value = _value(returns)
            if value:
                returns.children = []
                returns.extend(value)
            else:
                signature.remove(returns)


def _shorten_value(entry: nodes.Element) -> None:
    """Show the value of an alias with the names that a program uses: ``LabelSelector``, not where it is defined."""
    for text in list(entry.findall(nodes.Text)):
        parent = text.parent
        if isinstance(parent, addnodes.desc_annotation) or isinstance(parent.parent, addnodes.desc_annotation):
            parent.replace(text, nodes.Text(re.sub(r"\b(?:trioformer|collections|typing)\.(?:\w+\.)*", "", text)))


def plain_defaults(
    app: Sphinx, what: str, name: str, obj: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Replace what is no expression: ``<function key_of>``, and attrs' mark for a factory."""
    if signature is None:
        return None
    if what == "class" and not all(map(_is_public, re.findall(r"[\w.]*\b\w+\b", signature))):
        return "", None  # only functions of the library can call it
    plain = re.sub(r"<(?:built-in )?(?:function|class|bound method) '?([\w.]+)'?[^>]*>", _last_part, signature)
    plain = re.sub(r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1", plain)  # inside a union Sphinx leaves it
    # A new object for each call, which has no short name: as in a stub file.
    return re.sub(r"= ?NOTHING\b", "= ...", plain), returns


def _is_public(name: str) -> bool:
    """Return whether users can import this, as far as its name says."""
    parts = name.split(".")
    if parts[-1].startswith("_") and parts[-1][1:2].isupper():
        return False
    private = next((index for index, part in enumerate(parts) if part.startswith("_")), None)
    if parts[0] != "trioformer" or private is None or private < 2 or parts[-1].isupper():
        return True  # another package exports what is directly below the top; T is a type variable
    return hasattr(importlib.import_module(".".join(parts[:private])), parts[-1])


def _last_part(match: re.Match[str]) -> str:
    return match[1].rpartition(".")[2]


def setup(app: Sphinx) -> None:
    app.connect("object-description-transform", show_the_call)
    app.connect("autodoc-process-signature", plain_defaults)

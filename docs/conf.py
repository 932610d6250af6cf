"""How the documentation is built: ``nox -s docs``.

The build needs no network: names of other projects are printed, not linked.  Our own names must all resolve.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import re
import runpy
import sys
import tomllib
import types
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains.python import PythonDomain
    from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
sys.path.insert(0, str(ROOT))

from docs import recovery, signatures, summaries  # noqa: E402  # beside this file
from tests.parity import table as parity  # noqa: E402  # the tool of our tests, which no package holds

project = PROJECT["name"]
release = version = runpy.run_path(str(ROOT / "trioformer" / "_version.py"))["__version__"]
author = PROJECT["authors"][0]["name"]
project_copyright = f"2026, {author}"

OTHER_PROJECTS = {"attrs", "cattrs", "httpx", "msgspec", "prometheus_client", "pytest", "trio", "yaml"}

# They repeat names of other packages, which are meant everywhere else.
DOORS = ("trioformer.aio", "trioformer.sync")

# Generated kinds that public signatures mention, and that the reference has no entry for.
INTERNAL = {
    "CustomResourceConversion",
    "CustomResourceDefinition",
    "ObjectReference",
    "Scale",
    "TokenRequest",
}

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "docs.signatures",
    "docs.diagrams.directive",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "newsfragments"]
default_role = "py:obj"
nitpicky = True
# Users pass a str, which is hidden in one.
nitpick_ignore = [("py:class", "trioformer._secret.Secret")]

# The button copies what readers type: no prompts, and no output after them.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

html_theme = "furo"
html_title = f"trioformer {release}"
html_static_path = ["_static"]
html_css_files = ["trioformer.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_favicon = "_static/icon.svg"
html_theme_options = {"navigation_with_keys": True}
python_use_unqualified_type_names = True
maximum_signature_line_length = 88

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = signatures.aliases_of(
    f"trioformer.{name}"
    for name in ("client", "cache", "workqueue", "controller", "manager", "manifests", "watchtools")
)
autodoc_default_options = {
    "imported-members": True,  # a package holds nothing else
    "members": True,
    "undoc-members": True,
}
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = ["Backpressure", "Cancellation", "Ownership", "Source"]


def skip(app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: object) -> bool | None:
    """Leave out what a module merely imports from elsewhere."""
    if what == "class":
        return True if getattr(obj, "__name__", "").startswith("_") else None
    if what != "module":
        return None
    if isinstance(obj, types.ModuleType) or name == "annotations":
        return True
    is_foreign = not getattr(obj, "__module__", "trioformer").startswith("trioformer")
    return True if is_foreign and isinstance(obj, type | types.FunctionType) else None


@functools.cache
def _origins(package: str) -> dict[str, str]:
    """Return where each name of a package comes from."""
    path = importlib.import_module(package).__file__
    assert path is not None
    imports = [node for node in ast.walk(ast.parse(Path(path).read_text())) if isinstance(node, ast.ImportFrom)]
    return {
        alias.name: importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        for node in imports
        for alias in node.names
    }


def _description(package: str, name: str) -> str:
    """Fetch the lines that describe a constant or an alias from its module; the value itself has none."""
    while name in _origins(package):
        package = _origins(package)[name]
    described = ModuleAnalyzer.for_module(package)
    described.analyze()
    return "\n".join(described.attr_docs.get(("", name), ()))


def describe(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    if what == "data" and (described := _description(*name.rsplit(".", 1))):
        lines[:] = described.splitlines()


def begin_with_text(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep napoleon from reading "The amount: cores, bytes" as a type and a description."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def _is_elsewhere(name: str) -> bool:
    top = name.partition(".")[0]
    return "." in name and (top in sys.stdlib_module_names or top in OTHER_PROJECTS)


def _is_type_variable(name: str) -> bool:
    own = name.rpartition(".")[2]
    return own in ("T", "T_co", "T_contra", "M", "K", "K_contra", "H", "V", "O")


@functools.cache
def _private_names() -> frozenset[str]:
    """Return the classes and aliases of private modules: users receive such objects, and need not name their types."""
    nodes = [node for path in (ROOT / "trioformer").rglob("_*.py") for node in ast.parse(path.read_text()).body]
    classes = {node.name for node in nodes if isinstance(node, ast.ClassDef)}
    return frozenset(classes.union(ast.unparse(node.target) for node in nodes if isinstance(node, ast.AnnAssign)))


def _is_internal(name: str) -> bool:
    own = name.rpartition(".")[2]
    if re.fullmatch(r"trioformer\.models\.\w+_v\d\w*\.\w+", name):
        return True  # a generated kind; its module is listed, its classes are not
    # A name that is imported only for type checkers has no module here.
    return own.startswith("_") or (own in INTERNAL and (name == own or name.startswith("trioformer.")))


def _ours(domain: PythonDomain, target: str) -> str | None:
    """Return the documented name that is meant by a bare one, or by one that names its private module.

    The page of the package where something is defined comes first, so that the everyday names lead there.
    """
    if target.startswith("trioformer."):
        parts = target.split(".")
        public = [part for part in parts[:-1] if not part.startswith("_")]
        # A method's class begins with a capital.
        target = ".".join([*public, parts[-1]])
        return target if target in domain.objects else None
    found = [name for name in domain.objects if name.startswith("trioformer.") and name.endswith(f".{target}")]
    return min(found, key=lambda name: (name.startswith(DOORS), name.count(".")), default=None)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.TextElement
) -> nodes.reference | nodes.TextElement | None:
    """Find a name that Sphinx does not: one of ours by its last part, or somebody else's, which is not checked."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    if _is_elsewhere(target) or _is_type_variable(target) or _is_internal(target):
        return content
    domain = env.domains.python_domain
    name = _ours(domain, target)
    if name is None:
        # Receivers of such an object read about it where it is returned.
        return content if target.rpartition(".")[2] in _private_names() else None
    entry = domain.objects[name]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)


def fill_in_parity(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the table of client-go's tests against ours in its place."""
    if docname != "design/parity":
        return
    for path in (parity.ROWS, *parity.sources()):
        app.env.note_dependency(path)
    groups, claims = parity.read_rows(), parity.read_claims()
    for place, text in (
        (".. parity-counts", parity.summary(groups, claims)),
        (".. parity-table", parity.table(groups, claims)),
    ):
        assert place in source[0], place
        source[0] = source[0].replace(place, text)


def fill_in_recovery(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the tables of the reflector's states in their places."""
    if docname != "design/recovery":
        return
    for tables in (recovery, *recovery.SOURCES):
        app.env.note_dependency(Path(str(tables.__file__)))
    for place, table in recovery.PLACES.items():
        assert place in source[0], place
        source[0] = source[0].replace(place, table())


def mend_targets(app: Sphinx, doctree: nodes.document) -> None:
    """Keep ``object`` and ``type`` from being linked to attributes of those names, and lead aliases to one entry."""
    for node in list(doctree.findall(pending_xref)):
        if node.get("refdomain") != "py":
            continue
        if hasattr(builtins, node["reftarget"]):
            node.replace_self(nodes.Text(node["reftarget"]))
        elif node["reftarget"] in autodoc_type_aliases:
            # Two packages may export it.
            node["reftarget"] = autodoc_type_aliases[node["reftarget"]]
        elif node["reftarget"] in ("Pod", "ServiceAccount"):
            # `Api` imports them for type checkers only.
            node["reftarget"] = f"trioformer.models.core_v1.{node['reftarget']}"
        elif node["reftarget"] in ("Api", "Client", "WatchStream"):
            # The doors have classes of the same names.
            module = node.get("py:module") or ""
            package = module if module.startswith(DOORS) else "trioformer.client"
            node["reftarget"] = f"{package}.{node['reftarget']}"


def setup(app: Sphinx) -> None:
    app.connect("source-read", fill_in_parity)
    app.connect("source-read", fill_in_recovery)
    app.connect("doctree-read", mend_targets)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", describe, priority=300)
    app.connect("autodoc-process-docstring", begin_with_text, priority=400)
    app.connect("missing-reference", resolve)
    summaries.setup_with(app, _description)

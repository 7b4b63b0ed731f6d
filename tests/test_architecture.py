"""Rules of the sources that the linters do not check: private names, sizes of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sgcn

SOURCES = Path(sgcn.__file__).parent
MODULES = sorted(SOURCES.rglob("*.py"))
#: Methods that named tuples give to everybody; the underscore keeps them apart from fields.
PUBLIC = {"_replace", "_asdict", "_fields", "_make"}
POSITIONAL, LINES = 8, 70


def private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in PUBLIC


def owned(tree: ast.Module) -> set[str]:
    """Private names that a module itself defines: functions, classes, variables, attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def foreign(tree: ast.Module) -> set[str]:
    """Names under which a module has other packages and what it took from them."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(name.asname or name.name).partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("sgcn"):
            found |= {name.asname or name.name for name in node.names}
    return found


def root(node: ast.expr) -> str:
    """The first name of ``a.b.c``."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def taken(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Private names of other modules that one uses: imported, or as an attribute of something."""
    own, others = owned(tree), foreign(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for name in node.names:
                if private(name.name):
                    yield node.lineno, name.name
        elif isinstance(node, ast.Attribute) and private(node.attr):
            itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not itself and node.attr not in own and root(node) not in others:
                yield node.lineno, ast.unparse(node)


def test_the_rule_sees_what_it_should():
    source = (
        "import numpy\n"
        "from sgcn.graph import Graph, _hidden\n"
        "from sgcn import rng\n"
        "def _own(self, graph, other):\n"
        "    self._mine = graph._cache, rng._mix, numpy._core, other._mine, other._replace(a=1)\n"
    )
    assert [name for _, name in taken(ast.parse(source))] == ["_hidden", "graph._cache", "rng._mix"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_private_names_stay_private(path):
    assert list(taken(ast.parse(path.read_text()))) == []


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    """All but the compiled loops: those take their arrays one by one, and a call costs time."""
    for path in MODULES:
        name = path.relative_to(SOURCES)
        if name.parts[0] == "kernels":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield f"{name}:{node.lineno} {node.name}", node


def test_no_function_takes_more_than_eight_positional_arguments():
    found = {name: len(f.args.posonlyargs + f.args.args) for name, f in functions()}
    assert {name: count for name, count in found.items() if count > POSITIONAL} == {}


def test_no_function_is_longer_than_seventy_lines():
    found = {name: (f.end_lineno or 0) - f.lineno + 1 for name, f in functions()}
    assert {name: count for name, count in found.items() if count > LINES} == {}

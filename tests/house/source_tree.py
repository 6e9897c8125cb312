"""The package's modules as syntax trees: what they import when they run, and what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = "overnight"
SOURCE = Path(__file__).parents[2] / "src"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(module: str) -> ast.Module:
    path = modules()[module]
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _is_for_types_only(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below one that a running program reaches: not what only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not _is_for_types_only(child):
            yield child
            yield from running_nodes(child)


def _imported_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports are not used here"
        base = node.module or ""
        for alias in node.names:
            submodule = f"{base}.{alias.name}"
            yield submodule if submodule in modules() else base


def imports_of(module: str) -> set[str]:
    """What a module imports when it runs, also inside functions; modules, not names in them."""
    return {name for node in running_nodes(tree_of(module)) for name in _imported_by(node)}


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def below(*packages: str) -> list[str]:
    """The modules that are one of these packages or lie in one."""
    prefixes = tuple(f"{PACKAGE}.{package}" for package in packages)
    return [
        module
        for module in modules()
        if module in prefixes or module.startswith(tuple(prefix + "." for prefix in prefixes))
    ]


def _packages_around(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def closure(starts: list[str]) -> set[str]:
    """The modules of ours that get loaded when these are: what they import, and so on."""
    reached: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module in reached or not is_ours(module):
            continue
        reached.add(module)
        waiting += [*imports_of(module), *_packages_around(module)]
    return reached

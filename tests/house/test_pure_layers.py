"""What decides or translates is pure, also where an import contract cannot see it.

The contract in pyproject.toml names modules that these layers may not import. Here the list is
the other way round: what they may import, and what they may not call.
"""

from __future__ import annotations

import ast

import pytest

from tests.house.source_tree import below, imports_of, is_ours, running_nodes, tree_of

PURE = below("core", "formats", "model", "ports")

ALLOWED = {
    "__future__", "array", "ast", "base64", "binascii", "bisect", "collections",
    "collections.abc", "dataclasses", "difflib", "enum", "fractions", "functools", "hashlib",
    "heapq", "hmac", "itertools", "json", "math", "operator", "re", "shlex", "statistics",
    "string", "struct", "textwrap", "typing", "unicodedata", "zlib",
}  # fmt: skip

CALLS_THAT_REACH_OUT = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_imports_only_what_is_pure(module: str) -> None:
    foreign = {name for name in imports_of(module) if not is_ours(name)}
    assert foreign <= ALLOWED, f"{module} imports {sorted(foreign - ALLOWED)}"


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_calls_nothing_that_reaches_out(module: str) -> None:
    reaching = [
        f"line {node.lineno}: {node.func.id}()"
        for node in running_nodes(tree_of(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CALLS_THAT_REACH_OUT
    ]
    assert reaching == []

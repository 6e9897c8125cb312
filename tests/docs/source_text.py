"""What the program can say: the texts in its source, with an ellipsis for what is filled in."""

from __future__ import annotations

import ast
from functools import cache

from tests.docs.pages import ROOT

SOURCE = ROOT / "src" / "overnight"


@cache
def texts() -> frozenset[str]:
    """Every text in the package's source, adjoining ones joined."""
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        found.update(text for node in ast.walk(tree) if (text := _text(node)) is not None)
    return frozenset(found)


@cache
def class_names() -> frozenset[str]:
    """Every class of the package."""
    return frozenset(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
    )


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "…" for part in node.values)
    return None

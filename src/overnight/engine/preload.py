"""Importing the far half from one block of bytecode.

An engine imports forty modules at once. Looking each up in a zip file takes longer than
executing it, so the engine file begins with the code of all of them, for the
interpreter that packed it; see ``formats/bootstrap``.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType

    Codes = Mapping[str, tuple[bool, CodeType]]


class Preloaded:
    """Finder and loader of modules whose code is at hand."""

    def __init__(self, codes: Codes) -> None:
        """Take the code of each module by name, and whether it is a package."""
        self._codes = codes

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """What the import system asks of a finder."""
        known = self._codes.get(name)
        if known is None:
            return None
        make_spec = type(sys.__spec__)  # ModuleSpec, without importing importlib
        return make_spec(name, self, is_package=known[0])  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave making the module to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        exec(self._codes[module.__name__][1], module.__dict__)


def install(codes: Codes) -> None:
    """Let these modules be imported from here from now on."""
    sys.meta_path.insert(0, Preloaded(codes))

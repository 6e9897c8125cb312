"""ARCHITECTURE.md speaks of modules and classes that exist, and leaves no folder out."""

from __future__ import annotations

import re

from overnight.driver.package import FAR_HALF
from tests.docs.pages import ROOT, page
from tests.docs.source_text import SOURCE, class_names

PAGE = page("ARCHITECTURE.md")
_CODE = re.compile(r"`([^`]+)`")
_MODULE = re.compile(r"[a-z_]+(/[a-z_]+)*")
_CLASS = re.compile(r"([A-Z][a-z]+)+")


def code_words() -> set[str]:
    """What stands in code type in its prose."""
    return {word for line in PAGE.prose for word in _CODE.findall(line)}


def modules() -> set[str]:
    """Modules and packages, by their path below the package."""
    paths = [path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py")]
    return {str(path.parent if path.name == "__init__" else path) for path in paths}


def test_every_module_it_names_exists() -> None:
    named = {word for word in code_words() if "/" in word and _MODULE.fullmatch(word)}
    named |= {word for line in PAGE.text.splitlines() if line.startswith("    ")
              for word in re.findall(r"\b(?:core|driver|engine)/[a-z_]+", line)}
    missing = {word for word in named - modules() if not (ROOT / word).exists()}
    assert named, "it names no module at all"
    assert not missing, f"there are no such modules: {sorted(missing)}"


def test_every_class_it_names_exists() -> None:
    protocols = {"Source", "Context", "EngineHandle", "Observer"}
    named = {word for word in code_words() if _CLASS.fullmatch(word)}
    strange = named - class_names() - protocols
    assert not strange, f"there are no such classes: {sorted(strange)}"


def test_every_folder_has_its_row_among_the_layers() -> None:
    told = {row[0].strip("`") for row in PAGE.rows_under("The layers")}
    there = {name for name in modules() if "/" not in name and name not in (".", "__main__")}
    assert told == there


def test_the_far_half_is_the_one_that_is_packed() -> None:
    line = next(line for line in PAGE.prose if "*far half*" in line)
    told = set(_CODE.findall(line))
    packed = {name.removeprefix("overnight.").replace(".", "/") for name in FAR_HALF} - {
        "overnight", "core", "formats", "net",  # packages that hold more than their far half
    }
    uncovered = {name for name in packed if not {name, name.partition("/")[0]} & told}
    assert not uncovered, f"it does not name {sorted(uncovered)}"
    assert told <= packed, f"not packed: {sorted(told - packed)}"

"""No option without a test: whatever the commands take stands in one of these files."""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

import pytest

from overnight.cli.arguments import add_arguments


def _options() -> list[argparse.Action]:
    parser = argparse.ArgumentParser(add_help=False)
    add_arguments(parser, is_compatible=False)
    return [action for action in parser._actions if action.option_strings]


def _words_in_tests() -> set[str]:
    """Every string in the tests of options, up to ``=``."""
    trees = [ast.parse(path.read_text("utf-8"))
             for path in Path(__file__).parent.glob("test_options_*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {
        node.value.partition("=")[0] for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("option", _options(), ids=lambda action: action.option_strings[-1])
def test_every_option_is_tried_with_the_real_command(option: argparse.Action) -> None:
    assert _words_in_tests() & set(option.option_strings)

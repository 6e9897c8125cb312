"""The reference of the options is what the commands say for ``--help``."""

from __future__ import annotations

import pytest

from tests.docs.options_page import COMMANDS, groups, tables, wanted_rows


@pytest.mark.parametrize(
    ("commands", "group", "rows"),
    [pytest.param(*table, id=f"{table[0][-1]}: {table[1]}") for table in tables()],
)
def test_a_table_holds_the_options_of_its_group(
    commands: tuple[str, ...], group: str, rows: str
) -> None:
    wanted = wanted_rows(commands, group)
    assert rows == wanted, f"update it: python -m tests.docs.options_page\n{wanted}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_group_of_options_has_a_table(command: str) -> None:
    told = {group for commands, group, _ in tables() if command in commands}
    assert set(groups(command)) == told


"""What the command that gives a node back is told, and which nodes stay; when a run stops."""

from __future__ import annotations

from overnight.core.allocationend import (
    ASK_EVERY_S,
    LEAVE_S,
    asks_after,
    deadline_text,
    stops_at,
)
from overnight.core.giveback import Gone, command_variables, kept_nodes


def test_the_driver_s_node_is_named_where_it_is_not_used_any_more() -> None:
    gone = [Gone("n1", 0, ["n2"])]
    assert command_variables(gone, ["n1"], "n1")["DRIVER_NODE"] == "n1"
    assert "DRIVER_NODE" not in command_variables([Gone("n3", 0, ["n1"])], ["n3"], "n1")
    assert "DRIVER_NODE" not in command_variables(gone, ["n1"], None)


def test_the_nodes_that_stay_are_in_the_order_of_the_allocation() -> None:
    assert kept_nodes(["n1", "n2", "n3"], ["n3", "n2"], None) == ["n2", "n3"]
    assert kept_nodes(["n1", "n2", "n3"], [], "n2") == ["n2"]
    assert kept_nodes(["n1"], ["n9"], "n8") == []


def test_a_run_stops_the_grace_and_a_little_more_before_the_end() -> None:
    assert stops_at(1000.0, 0.0) == 1000.0 - LEAVE_S
    assert asks_after(1000.0 - LEAVE_S, 1000.0, 0.0) == 0.0
    assert asks_after(900.0 - LEAVE_S, 1000.0, 60.0) == 40.0


def test_the_end_is_asked_for_again_now_and_then() -> None:
    assert asks_after(0.0, 1e9, 0.0) == ASK_EVERY_S
    assert asks_after(0.0, None, 0.0) == ASK_EVERY_S


def test_a_person_is_told_how_to_go_on() -> None:
    text = deadline_text("J7", 30.0, "overnight resume run")
    assert "J7 ends in 30 s" in text and "overnight resume run" in text

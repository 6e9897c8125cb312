"""Which attempt ran beside which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from overnight.watch.history import read_history
from overnight.watch.lanes import OVERLAP_S, Stretch, lanes_of, natural_order, packed
from tests.watch.kit import Records, report

if TYPE_CHECKING:
    from pathlib import Path


def laid_out(records: Records) -> list[tuple[str, str, list[int]]]:
    return [
        (lane.node, lane.name, [stretch.report.task_id for stretch in lane.stretches])
        for lane in lanes_of(read_history(records.paths))
    ]


def test_the_log_says_in_which_slot_an_attempt_ran(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 1, slot=1).task(1, 0, 5, slot=0).task(2, 2, 1, slot=1)
    assert laid_out(records) == [("n1", "slot 0", [1]), ("n1", "slot 1", [0, 2])]


def test_without_a_log_attempts_take_the_first_lane_that_is_free(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False)
    records.task(0, 0, 10).task(1, 0.5, 2).task(2, 2.5, 2).task(3, 20, 1, node="n2")
    assert laid_out(records) == [
        ("n1", "lane 0", [0]), ("n1", "lane 1", [1, 2]), ("n2", "lane 0", [3]),
    ]


def test_per_engine_commands_have_a_lane_of_their_own(tmp_path: Path) -> None:
    records = Records(tmp_path).command(5, 0).task(0, 1, 1)
    assert laid_out(records) == [("n1", "slot 0", [0]), ("n1", "command 0", [5])]


def test_nodes_come_in_the_order_a_person_counts_them() -> None:
    names = ["n10", "n2", "gpu1", "n1"]
    assert sorted(names, key=natural_order) == ["gpu1", "n1", "n2", "n10"]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=50))
def test_packing_takes_as_many_lanes_as_there_were_attempts_at_once(
    spans: list[tuple[float, float]],
) -> None:
    stretches = [
        Stretch(report(id, after_s=start, elapsed_s=elapsed), "done", "", b"")
        for id, (start, elapsed) in enumerate(sorted(spans))
    ]
    at_once = [
        1 + sum(before.ended_at > stretch.started_at + OVERLAP_S for before in stretches[:i])
        for i, stretch in enumerate(stretches)
    ]
    assert len(packed("n1", "lane", stretches)) == max(at_once, default=0)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=50))
def test_packing_never_lays_two_over_each_other(spans: list[tuple[float, float]]) -> None:
    stretches = [
        Stretch(report(id, after_s=start, elapsed_s=elapsed), "done", "", b"")
        for id, (start, elapsed) in enumerate(sorted(spans))
    ]
    lanes = packed("n1", "lane", stretches)
    assert sum(len(lane.stretches) for lane in lanes) == len(spans)
    for lane in lanes:
        for one, next_one in zip(lane.stretches, lane.stretches[1:], strict=False):
            assert next_one.started_at + OVERLAP_S >= one.ended_at

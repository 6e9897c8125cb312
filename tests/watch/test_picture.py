"""What is planted in a run is found in its picture, where and as what it was."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

from overnight.model.outcome import Cancelled, Exited, Lost, TimedOut
from overnight.watch.history import read_history
from overnight.watch.layout import LEFT, RIGHT, WIDTH
from overnight.watch.picture import draw
from overnight.watch.slots import ALONE_LIMIT, SEEN_WIDTH
from overnight.watch.svg import svg_text
from tests.watch.kit import Records

if TYPE_CHECKING:
    from pathlib import Path

    from overnight.model.outcome import Outcome

SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """An SVG by what its elements stand for."""

    def __init__(self, *records: Records) -> None:
        history = read_history([path for part in records for path in part.paths])
        self.text = svg_text(draw(history, history.summary(), "Tasks_7f"))
        self.root = ElementTree.fromstring(self.text)

    def all(self, style: str) -> list[ElementTree.Element]:
        wanted = set(style.split())
        return [e for e in self.root.iter() if wanted <= set(e.get("class", "").split())]

    def drawn(self, style: str) -> list[ElementTree.Element]:
        """Without the squares of the legend."""
        return [e for e in self.all(style) if "key" not in e.get("class", "")]

    def one(self, style: str) -> ElementTree.Element:
        (element,) = self.drawn(style)
        return element

    def words(self) -> list[str]:
        return [element.text or "" for element in self.root.iter(SVG + "text")]


def extent(element: ElementTree.Element) -> tuple[float, float]:
    """Left and right of a rectangle."""
    left = float(element.get("x", "nan"))
    return left, left + float(element.get("width", "nan"))


def at(share: float) -> float:
    """The pixel of a moment, by the share of the run that is over."""
    return LEFT + (RIGHT - LEFT) * share


def test_a_planted_failure_is_a_box_of_its_own_from_its_start_to_its_end(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(10):
        outcome = Exited(3) if id == 4 else Exited(0)
        records.task(id, id * 10, 10, outcome, slot=id % 2, command=b"step %d" % id)
    picture = Picture(records)
    failure = picture.one("task failed")
    assert failure.get("data-task") == "4"
    assert failure.get("data-outcome") == "exit code 3"
    assert extent(failure) == pytest.approx((at(0.4), at(0.5)), abs=1)
    tip = failure.find(SVG + "title")
    assert tip is not None
    assert tip.text == "task 4, line 5: exit code 3, 10.0 s\nstep 4"


def test_every_task_of_a_small_run_is_a_box_of_its_own(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(30):
        records.task(id, id, 0.9, slot=id % 3)
    boxes = Picture(records).drawn("task done")
    assert sorted(int(box.get("data-task", "")) for box in boxes) == list(range(30))


def test_tasks_of_one_slot_are_in_one_row(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(6):
        records.task(id, id // 2 * 10, 10, slot=id % 2)
    rows: dict[str | None, set[int]] = {}
    for box in Picture(records).drawn("task done"):
        rows.setdefault(box.get("y"), set()).add(int(box.get("data-task", "")))
    assert sorted(map(sorted, rows.values())) == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize(
    ("outcome", "style"),
    [
        (TimedOut(-15, 60), "task failed timed-out"),
        (Lost("silent"), "task failed lost"),
        (Cancelled(-15, "interrupt"), "task cut-off"),
    ],
    ids=["timed out", "lost", "cut off"],
)
def test_kinds_of_endings_are_told_apart(tmp_path: Path, outcome: Outcome, style: str) -> None:
    records = Records(tmp_path).task(0, 0, 5).task(1, 5, 5, outcome)
    assert Picture(records).one(style).get("data-task") == "1"


def test_a_barrier_is_a_vertical_line_where_it_was_met(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 25).barrier(1, 25).task(2, 25, 75)
    picture = Picture(records)
    line = picture.one("barrier")
    assert (line.get("data-line"), line.get("data-task")) == ("2", "1")
    assert line.get("x1") == line.get("x2")
    assert float(line.get("x1", "")) == pytest.approx(at(0.25), abs=1)
    assert float(line.get("y2", "")) > float(line.get("y1", "")) + 20
    assert "barrier, line 2" in picture.words()


def test_a_check_that_ended_the_run_says_so(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 25, Exited(1)).barrier(1, 25, checks=True)
    picture = Picture(records)
    assert picture.one("check barrier").get("data-line") == "2"
    assert "CHECK, line 2" in picture.words()


def test_thousands_of_barriers_take_no_more_than_a_line_a_pixel(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False)
    for id in range(0, 6000, 2):
        records.task(id, id, 2).barrier(id + 1, id + 2)
    assert 100 < len(Picture(records).drawn("barrier")) <= WIDTH


def test_an_idle_gap_is_marked_from_the_last_end_to_the_next_start(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.task(0, 0, 30).task(1, 0, 40, slot=1).task(2, 60, 40).task(3, 65, 35, slot=1)
    picture = Picture(records)
    gap = picture.one("idle")
    assert gap.get("data-seconds") == "20.000"
    assert extent(gap) == pytest.approx((at(0.4), at(0.6)), abs=1)
    assert "idle 20.0 s" in picture.words()


def test_a_few_short_tasks_have_counts_and_no_rate_nobody_could_believe(tmp_path: Path) -> None:
    picture = Picture(Records(tmp_path).task(0, 0, 0.002))
    assert "Throughput: tasks that ended in each 0.1 ms" in picture.words()
    assert picture.words().count("1") == 2, "the scales of throughput and of durations"
    assert not any(word.endswith("/s") for word in picture.words())
    assert "1 task: 1 done, 2 ms" in picture.words()


def test_a_scale_of_few_tasks_names_no_half_of_one(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(3):
        records.task(id, 10 * id, 5)
    words = Picture(records).words()
    scale = words[words.index("3") - 1 : words.index("3") + 2]
    assert not {"2", "1.5"} & set(scale)


@pytest.mark.parametrize("slots", [1, 2, 3, 8])
def test_the_words_of_a_folded_pause_stay_within_the_lanes(tmp_path: Path, slots: int) -> None:
    records = Records(tmp_path)
    for slot in range(slots):
        records.task(slot, 0, 1, slot=slot).task(slots + slot, 90_000, 1, slot=slot)
    picture = Picture(records)
    fold = picture.one("fold")
    top, height = float(fold.get("y", "nan")), float(fold.get("height", "nan"))
    middle = sum(extent(fold)) / 2
    written = [e for e in picture.root.iter(SVG + "text")
               if abs(float(e.get("x", "nan")) - middle) < 1]
    assert written, "how long it was is said"
    assert all(top < float(e.get("y", "nan")) <= top + height + 2 for e in written)
    heading = "Slots over time (a grey strip is idle time, not to scale)"
    assert ("(not to" in picture.words()) != (heading in picture.words())


def test_a_wait_for_a_retry_is_marked_as_one_and_not_as_idle(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 10, Exited(1), attempt=1, settles=False)
    picture = Picture(records.task(0, 11, 9, attempt=2))
    assert picture.drawn("idle") == []
    assert extent(picture.one("wait")) == pytest.approx((at(0.5), at(0.55)), abs=1)


def test_the_picture_says_whether_it_counts_tasks_or_attempts(tmp_path: Path) -> None:
    once = Picture(Records(tmp_path, "a").task(0, 0, 10).task(1, 0, 10, Exited(1), slot=1))
    assert "tasks:" in once.words()
    assert any(word.startswith("Throughput: tasks that ended") for word in once.words())
    records = Records(tmp_path, "b").task(0, 0, 10, Exited(1), attempt=1, settles=False)
    twice = Picture(records.task(0, 11, 9, attempt=2))
    assert {"attempts:", "done 1", "failed 1", "1 task: 1 done, 20.0 s"} <= set(twice.words())
    assert any(word.startswith("Throughput: attempts that ended") for word in twice.words())
    assert any(word.startswith("Durations of attempts: ") for word in twice.words())


def test_a_run_without_a_pause_has_no_idle_gap(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 50).task(1, 49, 51, slot=1)
    assert Picture(records).drawn("idle") == []


def test_days_between_a_run_and_its_resume_are_folded(tmp_path: Path) -> None:
    first = Records(tmp_path, "a").task(0, 0, 100)
    second = Records(tmp_path, "b").task(1, 300_000, 100)
    picture = Picture(first, second)
    left, right = extent(picture.one("fold"))
    assert picture.one("fold").get("data-seconds") == "299900.000"
    assert right - left < 60
    before, after = picture.drawn("task done")
    assert extent(before) == pytest.approx((LEFT, left), abs=1)
    assert extent(after) == pytest.approx((right, RIGHT), abs=1)


def test_lanes_name_their_slots(tmp_path: Path) -> None:
    picture = Picture(Records(tmp_path).task(0, 0, 1, slot=0).task(1, 0, 1, slot=3))
    tracks = [(lane.get("data-node"), lane.get("data-slot")) for lane in picture.drawn("lane")]
    assert tracks == [("n1", "slot 0"), ("n1", "slot 3")]
    assert {"slot 0", "slot 3"} <= set(picture.words())


def test_hundreds_of_lanes_are_named_by_node_in_the_order_a_person_counts(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(400):
        records.task(id, 0, 1, slot=id % 40, node=f"n{id // 40 + 1}")
    picture = Picture(records)
    names = [text for text in picture.words() if text.endswith(" (40)")]
    assert names == [f"n{number} (40)" for number in range(1, 11)]
    assert [lane.get("data-node") for lane in picture.drawn("lane")] == [
        f"n{number}" for number in range(1, 11)
    ]


def test_an_earlier_attempt_is_drawn_beside_the_one_that_counts(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.task(0, 0, 10, Exited(1), settles=False).task(0, 20, 10, attempt=2)
    picture = Picture(records)
    assert picture.one("task failed").get("data-task") == "0"
    assert picture.one("task done").get("data-attempt") == "2"


def test_per_engine_commands_are_drawn_as_such(tmp_path: Path) -> None:
    picture = Picture(Records(tmp_path).command(3, 0).task(0, 1, 1))
    assert picture.one("per-engine").get("data-task") == "3"


def test_throughput_and_durations_have_a_panel_each(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id in range(40):
        records.task(id, id, 1, Exited(id == 20))
    picture = Picture(records)
    for name in ("throughput", "durations"):
        (panel,) = picture.all(f"panel {name}")
        kinds = [path.get("class") for path in panel.iter(SVG + "path")]
        assert kinds == ["column done", "column failed"]


def test_half_of_the_tasks_are_left_of_the_line_in_the_durations(tmp_path: Path) -> None:
    records = Records(tmp_path)
    for id, elapsed_s in enumerate((1, 2, 3, 4, 50)):
        records.task(id, id * 60, elapsed_s)
    assert Picture(records).one("middle").get("data-seconds") == "3.000"


def test_a_run_of_nothing_can_be_drawn(tmp_path: Path) -> None:
    assert "0 tasks: 0 done" in Picture(Records(tmp_path)).words()


def test_a_run_of_barriers_only_can_be_drawn(tmp_path: Path) -> None:
    assert Picture(Records(tmp_path).barrier(0, 5)).one("barrier").get("data-line") == "1"


# ---------------------------------------------------------------------------- large runs


def a_large_run(folder: Path, count: int, slots: int, failing: range) -> Records:
    """Tasks of about a second, back to back in each slot, those of ``failing`` failing."""
    random = Random(1)
    free_at = [0.0] * slots
    records = Records(folder, has_log=False)
    for id in range(count):
        slot = id % slots
        elapsed_s = random.uniform(0.5, 1.5)
        outcome = Exited(1) if id in failing else Exited(0)
        records.task(id, free_at[slot], elapsed_s, outcome, node=f"n{slot}")
        free_at[slot] += elapsed_s + 0.002
    return records


def test_one_failure_among_a_hundred_thousand_is_seen(tmp_path: Path) -> None:
    picture = Picture(a_large_run(tmp_path, 100_000, 16, range(54_321, 54_322)))
    failure = picture.one("task failed")
    left, right = extent(failure)
    assert failure.get("data-task") == "54321"
    assert right - left >= SEEN_WIDTH - 0.1
    assert left == pytest.approx(at(0.543), abs=4)
    assert len(picture.drawn("mark failed")) == 1
    assert len(picture.text) < 100_000


def test_a_hundred_thousand_tasks_of_which_half_fail_make_a_picture_below_a_megabyte(
    tmp_path: Path,
) -> None:
    picture = Picture(a_large_run(tmp_path, 100_000, 64, range(0, 100_000, 2)))
    assert picture.drawn("task failed")
    assert len(picture.text) < 1_000_000


def test_failures_too_narrow_to_be_told_apart_share_a_box_that_says_how_many(
    tmp_path: Path,
) -> None:
    failure = Picture(a_large_run(tmp_path, 3000, 1, range(1000, 1010))).one("task failed")
    assert (failure.get("data-task"), failure.get("data-count")) == ("1000", "10")


def test_failures_wide_enough_to_be_told_apart_have_a_box_each(tmp_path: Path) -> None:
    records = Records(tmp_path).task(0, 0, 10, Exited(1)).task(1, 10, 10, Exited(1))
    boxes = Picture(records).drawn("task failed")
    assert [box.get("data-task") for box in boxes] == ["0", "1"]


def test_failures_with_a_success_between_them_are_not_one(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False)
    for id in range(1000):
        records.task(id, id, 1, Exited(id in (500, 504)))
    boxes = Picture(records).drawn("task failed")
    assert [box.get("data-task") for box in boxes] == ["500", "504"]


def test_a_gap_that_can_be_seen_is_not_drawn_over_in_a_large_run(tmp_path: Path) -> None:
    records = Records(tmp_path, has_log=False)
    for id in range(2 * ALONE_LIMIT):
        late = 300 if id >= ALONE_LIMIT else 0
        records.task(id, id + late, 1)
    picture = Picture(records)
    assert picture.one("idle").get("data-seconds") == "300.000"
    (path,) = picture.drawn("task done")
    assert path.get("d", "").count("M") == 2

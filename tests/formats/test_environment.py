"""The environment of a task, entry by entry."""

from __future__ import annotations

from overnight.formats.environment import attempt_variables, marks, slot_environment
from overnight.model.attempt import Attempt
from overnight.model.messages import PER_ENGINE_SLOT, Setup
from overnight.model.task import Task


def setup(**changes: object) -> Setup:
    values: dict[str, object] = {
        "run": "run_7f", "name_tasks": "Tasks", "generation": 1, "rank": 2, "slots": 2,
        "cores_per_task": 3, "cwd": "/", "variables": [], "always_shell": False,
        "late_output_s": 5.0, "leaves_children": True, "timeout_s": None, "kill_after_s": 2.0,
        "output_dir": None, "spools": [], "attach": "", "keep_reports_s": 1.0,
    }
    return Setup(**(values | changes))  # type: ignore[arg-type]


ATTEMPT = Attempt(Task(12, 1234567, -1, b"true"), 3)


def test_each_attempt_has_its_numbers_plain_and_padded() -> None:
    assert attempt_variables(ATTEMPT) == [
        b"DISBATCH_TASKID=12", b"DISBATCH_TASKID_ZP=000012",
        b"DISBATCH_STREAM_INDEX=1234567", b"DISBATCH_STREAM_INDEX_ZP=1234567",
        b"DISBATCH_REPEAT_INDEX=-1", b"DISBATCH_REPEAT_INDEX_ZP=-00001",
        b"OVERNIGHT_ATTEMPT=3",
    ]


def test_each_slot_has_what_is_the_same_for_all_its_attempts() -> None:
    assert slot_environment([b"HOME=/root"], setup(), 1) == [
        b"HOME=/root", b"DISBATCH_JOBID=run_7f", b"DISBATCH_NAMETASKS=Tasks",
        b"DISBATCH_CORES_PER_TASK=3", b"DISBATCH_ENGINE_RANK=2", b"DISBATCH_CYLINDER_RANK=1",
    ]


def test_variables_of_an_outer_run_are_replaced_and_its_host_list_passes() -> None:
    outer = [
        b"DISBATCH_TASKID=9", b"DISBATCH_JOBID=outer", b"DISBATCH_KVSSTCP_HOST=h:1",
        b"OVERNIGHT_ATTEMPT=4", b"DISBATCH_SSH_NODELIST=localhost:4",
    ]
    names = [each.partition(b"=")[0] for each in slot_environment(outer, setup(), 0)]
    assert names.count(b"DISBATCH_JOBID") == 1
    assert b"DISBATCH_SSH_NODELIST" in names
    assert not {b"DISBATCH_TASKID", b"DISBATCH_KVSSTCP_HOST", b"OVERNIGHT_ATTEMPT"} & set(names)


def test_variables_of_the_run_and_of_the_slot_win_over_inherited_ones() -> None:
    changed = setup(
        variables=[b"DISBATCH_KVSSTCP_HOST=here:2"], slot_variables=[[b"GPU=a"], [b"GPU=b"]]
    )
    environment = slot_environment([b"GPU=0,1", b"A=B=C"], changed, 1)
    assert [e for e in environment if e.startswith(b"GPU")] == [b"GPU=b"]
    assert b"DISBATCH_KVSSTCP_HOST=here:2" in environment
    assert b"A=B=C" in environment


def test_per_engine_commands_have_rank_minus_one_and_the_first_slots_share() -> None:
    changed = setup(slot_variables=[[b"GPU=a"], [b"GPU=b"]])
    environment = slot_environment([], changed, PER_ENGINE_SLOT)
    assert b"DISBATCH_CYLINDER_RANK=-1" in environment
    assert b"GPU=a" in environment


def test_the_marks_of_an_attempt_stand_in_its_environment() -> None:
    environment = slot_environment([], setup(), 1) + attempt_variables(ATTEMPT)
    assert set(marks(setup(), 1, ATTEMPT)) <= set(environment)

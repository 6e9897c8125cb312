"""What users ask of a pool while the run goes on: list, add, drain, stop, set, forget."""

from __future__ import annotations

import json
import os
import stat
import sys
import time

import pytest

from overnight.cli.pool import next_moment
from overnight.driver.control import control_path
from overnight.errors import UsageError
from overnight.guard.private import private_directory
from tests.e2e.kit import Ended, Stage, disbatch, overnight, run, until
from tests.join.kit import ELSEWHERE, began, join, listening, waits_for
from tests.join.test_join import has_begun, ran_once


def pool(stage: Stage, verb: str, *arguments: str) -> Ended:
    return stage.run(overnight("pool", verb, "P", *arguments))


def table(stage: Stage) -> list[list[str]]:
    ended = pool(stage, "list")
    assert ended.status == 0, ended.err
    return [line.split(maxsplit=5) for line in ended.out.splitlines()[1:]]


def test_the_pool_is_listed_with_what_runs_where(stage):
    stage.write("Tasks", *[waits_for("go")] * 3)
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "2", "-l", "friend")
    until(lambda: len(began(stage)) == 3, "all slots are busy")
    here = os.uname().nodename
    assert table(stage) == [
        ["0", here, "SSH0", "1", "1", "open"], ["1", here, "friend", "2", "2", "open"],
    ]
    stage.write("go")
    assert live.wait().status == 0 and joined.wait().status == 0


def test_engines_are_added_and_others_may_join_from_then_on(stage):
    stage.write("Tasks", *[waits_for("go")] * 4)
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    has_begun(stage, 0)
    ended = pool(stage, "add", "-s", "localhost:2", "-c", "0.5")
    assert (ended.status, ended.out) == (0, "1 engine is started.\n"), ended.err
    until(lambda: len(began(stage)) == 4, "all slots are busy")
    until(stage.path("P_join").exists, "the join file")
    stage.write("go")
    assert live.wait().status == 0, live.err
    ran_once(stage, 4)


def test_a_drained_engine_lets_its_task_end_and_leaves(stage):
    stage.write("Tasks", *[waits_for("go")] * 2, *[waits_for("more")] * 2)
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "1", "-l", "friend")
    has_begun(stage, 0, 1)
    ended = pool(stage, "drain", "friend")
    assert ended.status == 0 and "leaves when its tasks have ended (1 tasks)" in ended.out
    assert [row[-1] for row in table(stage)] == ["open", "draining"]
    assert not joined.is_over
    stage.write("go")
    assert joined.wait().status == 0, joined.err
    stage.write("more")
    assert live.wait().status == 0, live.err
    ran_once(stage, 4)
    (on_friend,) = [id for id, ranks in began(stage).items() if ranks == [1]]
    assert on_friend in (0, 1)


def test_a_stopped_engine_leaves_now_and_its_task_runs_elsewhere_without_a_failure(stage):
    stage.write("Tasks", waits_for("go"), waits_for("go"))
    live = listening(stage, "-j", "1")
    joined = join(stage, "-n", "1")
    has_begun(stage, 0, 1)
    assert pool(stage, "stop", "1").status == 0
    assert joined.wait().status == 0, joined.err
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("twice") == ""
    assert sorted(map(len, began(stage).values())) == [1, 2]


def test_the_slots_of_an_engine_change_at_once(stage):
    stage.write("Tasks", *[waits_for("go")] * 3, *[waits_for("more")] * 3)
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    has_begun(stage, 0)
    assert pool(stage, "set", "0", "jobs=3").status == 0
    has_begun(stage, 0, 1, 2)
    assert pool(stage, "set", "0", "jobs=1").status == 0
    stage.write("go")
    until(lambda: stage.read("ended").count("\n") == 3, "three tasks have ended")
    until(lambda: len(began(stage)) >= 4, "one more begins")
    assert table(stage)[0][3:5] == ["1", "1"]
    stage.write("more")
    assert live.wait().status == 0, live.err
    ran_once(stage, 6)


@pytest.mark.needs("namespaces")
def test_the_tasks_of_a_machine_that_is_said_to_be_gone_run_elsewhere(stage, wire):
    """And should it come back all the same, it is told to end what it runs."""
    stage.write("Tasks", waits_for("go"), f"{waits_for('go')}; echo >> finished")
    live = listening(stage, "-j", "1")
    laid = wire()
    joined = laid.engine("-n", "1", "--node", "island", through=ELSEWHERE)
    has_begun(stage, 0, 1)
    (away,) = [id for id, ranks in began(stage).items() if ranks == [1]]
    assert "no engine on island is cut off" in pool(stage, "forget", "island").err
    laid.cut(dead=True)
    live.says("held back")
    assert f"task {away} is held back" in live.err
    assert "overnight pool forget" in live.err and "island" in live.err
    assert pool(stage, "set", "0", "jobs=2").status == 0
    assert len(began(stage)[away]) == 1, "nothing is given out again without proof"
    assert pool(stage, "forget", "island").status == 0
    until(lambda: len(began(stage)[away]) == 2, "it runs elsewhere")
    laid.mend()
    assert joined.wait().status == 0, joined.err
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == {0: 0, 1: 0}
    assert "too late" in live.err


@pytest.mark.needs("namespaces")
def test_every_verb_works_from_another_machine(stage):
    stage.write("Tasks", waits_for("go"))
    live = listening(stage, "-j", "1")
    has_begun(stage, 0)
    listed = stage.run([*ELSEWHERE, "env", "-i", "sh", "-c", 'rm -rf /nowhere; exec "$@"', "sh",
                        *overnight("pool", "list", "P")])
    assert listed.status == 0, listed.err
    # Without the socket here, as on another machine: over the network.
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /tmp/overnight-$(id -u) &&'
              ' exec "$@"', "sh"]
    there = stage.run([*hidden, *overnight("pool", "list", "P")])
    assert (there.status, there.out) == (0, listed.out), there.err
    stage.write("go")
    assert live.wait().status == 0


def test_a_run_whose_pool_is_empty_says_how_to_add_to_it_and_goes_on_then(stage):
    stage.write("Tasks", *["true"] * 4)
    live = stage.start(disbatch("-C", "2", "-p", "P", "Tasks"))
    live.says("no slots are there")
    assert str(stage.path("P_dbUtil.sh")) in live.err
    added = stage.run([str(stage.path("P_dbUtil.sh")), "-s", "localhost:1"])
    assert added.status == 0, added.err
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == dict.fromkeys(range(4), 0)


def test_a_run_that_starts_bare_prints_its_script_and_waits(stage):
    stage.write("Tasks", "true")
    command = [word for word in disbatch("-S", "-p", "P", "Tasks")
               if word not in ("-s", "localhost:2")]
    live = stage.start(command)
    script = stage.path("P_dbUtil.sh")
    until(lambda: live.out, "the script's path")
    assert live.out == f"Run this script to add compute contexts:\n   {script}\n"
    added = stage.run([str(script), "-s", "localhost:1"])
    assert (live.wait().status, added.status) == (0, 0), (live.err, added.err)


def test_the_script_works_from_a_path_with_blanks_and_from_a_copy(stage):
    folder = stage.path("a folder 'with' \"signs\"")
    folder.mkdir()
    (folder / "my tasks").write_text("true\n" * 3)
    live = stage.start([
        *overnight("run", "-S", "-p", str(folder / "my run"), str(folder / "my tasks")),
    ])
    script = folder / "my run_dbUtil.sh"
    until(script.exists, "the script")
    copy = stage.write("slurm_script", script.read_text())
    added = stage.run(["bash", str(copy), "--engine"], cwd=folder.parent)
    assert (live.wait().status, added.status) == (0, 0), (live.err, added.err)


def test_the_script_holds_no_secret_and_is_its_owners_alone(stage):
    stage.write("Tasks", waits_for("go"))
    live = listening(stage, "-j", "1")
    secret = json.loads(stage.read("P_join"))["secret"]
    script = stage.path("P_dbUtil.sh")
    assert secret not in script.read_text()
    assert stat.S_IMODE(script.stat().st_mode) == 0o700
    stage.write("go")
    live.wait()


def test_a_loan_that_ends_gives_the_host_back_and_its_task_to_others(stage):
    stage.write("Tasks", waits_for("go"), waits_for("go"))
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    has_begun(stage, 0)
    # The next full minute is too far away for a test: the driver is asked itself.
    asking = (
        "import sys, time; from overnight.cli.ask import ask;"
        " from overnight.cli.join import files_of;"
        " ask(files_of('P'), {'verb': 'add', 'ssh_node': ['localhost:1'], 'cpus_per_task': None,"
        " 'tasks_per_node': None, 'label': 'lent', 'task_limit': 0, 'until': time.time() + 2})"
    )
    assert stage.run([sys.executable, "-c", asking]).status == 0
    has_begun(stage, 0, 1)
    until(lambda: len(table(stage)) == 1, "the lent engine has left")
    stage.write("go")
    assert live.wait().status == 0, live.err
    assert stage.codes("P") == {0: 0, 1: 0}
    assert stage.read("twice") == ""


@pytest.mark.parametrize(("verb", "arguments", "said"), [
    ("drain", ["nobody"], "'nobody' is no engine"),
    ("set", ["0", "jobs=0"], "from 1 to"),
    ("set", ["0", "slots=3"], "jobs=4"),
    ("set", ["jobs=3"], "jobs=4"),
    ("forget", ["nohost"], "no engine on nohost is cut off"),
    ("add", ["-s", "nowhere:x"], "nowhere:x"),
    ("add", ["-s", "localhost:1", "--until", "25:00"], "08:00"),
])  # fmt: skip
def test_what_cannot_be_done_is_said_and_changes_nothing(stage, verb, arguments, said):
    stage.write("Tasks", waits_for("go"))
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    has_begun(stage, 0)
    before = table(stage)
    ended = pool(stage, verb, *arguments)
    assert ended.status != 0 and said in ended.err and "Traceback" not in ended.err
    assert table(stage) == before
    stage.write("go")
    assert live.wait().status == 0


def test_a_run_that_has_ended_is_said_to_have(stage):
    stage.write("Tasks", "true")
    assert stage.run(run("-p", "P", "Tasks")).status == 0
    assert "it has ended" in pool(stage, "list").err


def test_the_next_time_a_clock_shows_a_time_is_within_a_day():
    now = time.time()
    for text in ("00:00", "08:00", "23:59"):
        moment = next_moment(text, now)
        assert now < moment <= now + 90_000
        assert time.strftime("%H:%M", time.localtime(moment)) == text
    for wrong in ("24:00", "8", "08:60", "noon"):
        with pytest.raises(UsageError):
            next_moment(wrong, now)


def test_the_socket_of_a_driver_is_gone_when_it_has_ended(stage):
    stage.write("Tasks", waits_for("go"))
    live = stage.start(run("-j", "1", "-p", "P", "Tasks"))
    has_begun(stage, 0)
    path = control_path(private_directory(), os.path.realpath(stage.path("P")))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    stage.write("go")
    live.wait()
    assert not os.path.exists(path)

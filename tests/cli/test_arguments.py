"""What the command line promises: every option in every spelling, and a word for each mistake."""

from __future__ import annotations

import argparse
import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overnight.cli import arguments, attach, report, resume, run
from overnight.cli.arguments import add_arguments, options_of, parse
from overnight.errors import UsageError
from overnight.model.options import RunOptions
from overnight.observers.runlog import LEVELS


def parser_of(is_compatible: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="disBatch" if is_compatible else "overnight run")
    add_arguments(parser, is_compatible)
    return parser


def parsed(*words: str, is_compatible: bool = True) -> argparse.Namespace:
    return parse(parser_of(is_compatible), words, is_compatible)


def options(*words: str, is_compatible: bool = True) -> RunOptions:
    return options_of(parsed(*words, is_compatible=is_compatible), is_compatible)


def ours(*words: str) -> RunOptions:
    return options(*words, is_compatible=False)


# -- disBatch's options -------------------------------------------------------------------

CONTRACT = [
    ("-e", "exit_code", True), ("--exit-code", "exit_code", True),
    ("-f", "fail_fast", True), ("--fail-fast", "fail_fast", True),
    ("-p out/run", "prefix", "out/run"), ("--prefix out/run", "prefix", "out/run"),
    ("-r a -r b", "resume_from", ("a", "b")), ("--resume-from a", "resume_from", ("a",)),
    ("-R", "retry", True), ("--retry", "retry", True),
    ("--force-resume", "force_resume", True),
    ("--status-header", "status_header", True),
    ("--logfile l", "logfile", "l"),
    *((f"--loglevel {level}", "loglevel", level) for level in LEVELS),
    ("-s localhost:2", "ssh_node", ("localhost:2",)),
    ("-s a:1,b:2 --ssh-node c:3", "ssh_node", ("a:1,b:2", "c:3")),
    ("-c 2", "cpus_per_task", 2.0), ("--cpusPerTask 0.5", "cpus_per_task", 0.5),
    ("-t 4", "tasks_per_node", 4), ("--tasksPerNode 4", "tasks_per_node", 4),
    ("--fill", "fill", True),
    ("-C 0", "context_task_limit", 0), ("--context-task-limit 9", "context_task_limit", 9),
    ("-g", "gpu", True), ("--gpu", "gpu", True),
    ("-E A -E B,C", "env_resource", ("A", "B,C")), ("--env-resource A", "env_resource", ("A",)),
    ("-l mine", "label", "mine"), ("--label mine", "label", "mine"),
]  # fmt: skip
BESIDE = [
    ("--directives lenient", "directives", "lenient"),
    ("--directives refuse", "directives", "refuse"),
    ("--by-text", "by_text", True),
    ("--resume-check-limit 100", "resume_check_limit", 100),
    ("--always-shell", "always_shell", True),
    ("--late-output 1.5", "late_output", 1.5),
    ("--crash-limit 7", "crash_limit", 7),
    ("--keep-reports 2d", "keep_reports", 2 * 86400.0),
]  # fmt: skip
OURS = [
    ("-j 8", "jobs", 8), ("--jobs 8", "jobs", 8),
    ("--retries 3", "retries", 3),
    ("--timeout 5m", "timeout", 300.0),
    ("--timeout 0", "timeout", None),
    ("--timeout 0.0h", "timeout", None),
    ("--kill-after 0", "kill_after", 0.0),
    ("--max-failures 10", "max_failures", 10),
    ("--leave-children", "leave_children", True),
    ("--delay 0.5", "delay", 0.5),
    ("--load 4.5", "load", 4.5),
    ("--memfree 2G", "memfree", 2 << 30),
    ("--shuffle", "shuffle", -1), ("--shuffle=5", "shuffle", 5),
    ("--output DIR", "output", "DIR"),
    ("--print", "print", True),
    ("--print --keep-order", "keep_order", True), ("--print --tag", "tag", True),
    ("-q", "quiet", True), ("--quiet", "quiet", True),
    ("--json", "json", True),
]  # fmt: skip
ids = {"ids": lambda value: value if isinstance(value, str) else ""}


@pytest.mark.parametrize(("words", "name", "value"), [*CONTRACT, *BESIDE], **ids)
@pytest.mark.parametrize("is_compatible", [True, False], ids=["disBatch", "overnight run"])
def test_both_commands_take_what_disbatch_takes(words, name, value, is_compatible):
    chosen = options(*words.split(), "Tasks", is_compatible=is_compatible)
    assert getattr(chosen, name) == value


@pytest.mark.parametrize(("words", "name", "value"), OURS, **ids)
def test_overnight_run_takes_ours(words, name, value):
    assert getattr(ours("Tasks", *words.split()), name) == value


@pytest.mark.parametrize("words", [words for words, _, _ in OURS])
def test_disbatch_does_not_take_ours(words, capsys):
    with pytest.raises(SystemExit) as ended:
        options(*words.split(), "Tasks")
    assert ended.value.code == 2
    assert "unrecognized arguments" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "name", "value"), CONTRACT, **ids)
def test_options_may_follow_the_list(words, name, value):
    chosen = options("Tasks", *words.split())
    assert (chosen.task_file, getattr(chosen, name)) == ("Tasks", value)


def test_a_list_may_stand_between_options():
    chosen = options("-e", "Tasks", "-s", "localhost:1")
    assert (chosen.task_file, chosen.exit_code) == ("Tasks", True)
    assert chosen.ssh_node == ("localhost:1",)


def test_standard_input_is_a_list():
    assert options("-").task_file == "-"


def test_a_list_whose_name_begins_with_a_dash_stands_behind_two():
    assert options("-e", "--", "--resume").task_file == "./--resume"
    assert options("-e", "--", "-").task_file == "-"
    assert options("-e", "--", "a b").task_file == "a b"


@pytest.mark.parametrize("option", ["-K", "--no-retire"])
def test_keeping_all_nodes_is_taken_in_both_spellings(option):
    assert parsed(option, "Tasks").no_retire


@pytest.mark.parametrize("option", ["-k", "--retire-cmd"])
@pytest.mark.parametrize("command", ["", "echo $NODE"])
def test_a_retire_command_is_taken_in_both_spellings_also_an_empty_one(option, command):
    assert parsed(option, command, "Tasks").retire_cmd == command


def test_values_may_stand_behind_an_equals_sign():
    assert options("--prefix=a=b", "--cpusPerTask=2", "Tasks").prefix == "a=b"


# -- cut short ----------------------------------------------------------------------------


def unique_abbreviations() -> list[tuple[str, str]]:
    """What disBatch's own parser would take for one of its options, and that option."""
    return [
        (option[:end], option)
        for option in arguments.CONTRACT
        for end in range(len("--x"), len(option))
        if sum(other.startswith(option[:end]) for other in arguments.CONTRACT) == 1
    ]


VALUES = {
    "--loglevel": "INFO", "--context-task-limit": "1", "--cpusPerTask": "1", "--mailFreq": "1",
    "--tasksPerNode": "1",
}  # fmt: skip


def test_disbatchs_options_are_all_here():
    known = {word for action in parser_of(True)._actions for word in action.option_strings}
    assert set(arguments.CONTRACT) - known == {"--version"}  # which the command itself adds


@pytest.mark.parametrize(("short", "option"), unique_abbreviations())
def test_what_is_short_for_an_option_of_disbatchs_is_so_here(short, option):
    parser = parser_of(True)
    parser.add_argument("--version", action="version", version="3.0")
    if option in ("--help", "--version"):
        with pytest.raises(SystemExit) as ended:
            parse(parser, [short], True)
        assert ended.value.code == 0
        return
    (action,) = (one for one in parser._actions if option in one.option_strings)
    value = VALUES.get(option, "x")
    words = [short] if action.nargs == 0 else [f"{short}={value}"]
    found = parse(parser, [*words, "Tasks"], True)
    assert getattr(found, action.dest) not in (None, False, [])


def test_ours_may_be_cut_short_where_disbatch_has_nothing_alike():
    assert options("--keep-r", "1h", "Tasks").keep_reports == 3600
    assert options("--always", "Tasks").always_shell
    assert ours("--time", "5", "Tasks").timeout == 5


def test_what_is_short_for_two_options_is_said_with_both(capsys):
    with pytest.raises(SystemExit) as ended:
        parsed("--log", "x", "Tasks")
    assert ended.value.code == 2
    assert "--logfile, --loglevel" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--shuffle", "--shuf", "--sh"])
def test_a_list_behind_shuffle_is_the_list(option):
    chosen = ours(option, "Tasks")
    assert (chosen.shuffle, chosen.task_file) == (-1, "Tasks")


def test_a_seed_behind_shuffle_is_taken_with_an_equals_sign():
    chosen = ours("Tasks", "--shuffle=0", "-e")
    assert (chosen.shuffle, chosen.task_file) == (0, "Tasks")


# -- defaults -----------------------------------------------------------------------------


def test_where_the_two_commands_differ_by_default():
    compatible, own = options("Tasks"), ours("Tasks")
    differing = {
        name for name in RunOptions.__annotations__
        if getattr(compatible, name) != getattr(own, name)
    }
    assert differing == {"is_compatible", "late_output", "leave_children"}
    assert (compatible.late_output, own.late_output) == (5.0, 0.2)
    assert (compatible.leave_children, own.leave_children) == (True, False)


def test_without_options_everything_has_its_default():
    assert options("Tasks").chosen().items() >= {"task_file": "Tasks", "prefix": "."}.items()
    default = RunOptions(task_file="Tasks", is_compatible=True)
    for name in RunOptions.__annotations__:
        assert getattr(options("Tasks"), name) == getattr(default, name), name


# -- values -------------------------------------------------------------------------------

WRONG = [
    ("-t", "0", "not a whole number of at least 1"),
    ("-t", "two", "not a whole number of at least 1"),
    ("-C", "-1", "not a whole number of at least 0"),
    ("-C", "1.5", "not a whole number of at least 0"),
    ("-c", "0", "not a number of cores above zero"),
    ("-c", "nan", "not a number of cores above zero"),
    ("-c", "many", "not a number of cores above zero"),
    ("--crash-limit", "0", "not a whole number of at least 1"),
    ("--mailFreq", "0", "not a whole number of at least 1"),
    ("--late-output", "soon", "not a duration"),
    ("--late-output", "", "not a duration"),
    ("--keep-reports", "-1d", "not a duration"),
    ("--keep-reports", "inf", "not a duration"),
    ("--loglevel", "LOUD", "choose from"),
    ("--directives", "maybe", "choose from"),
]  # fmt: skip
WRONG_OURS = [
    ("-j", "0", "not a whole number of at least 1"),
    ("--retries", "-1", "not a whole number of at least 0"),
    ("--timeout", "5 parsecs", "not a duration"),
    ("--timeout", "nan", "not a duration"),
    ("--max-failures", "0", "not a whole number of at least 1"),
    ("--load", "heavy", "not a load"),
    ("--load", "nan", "not a load"),
    ("--load", "inf", "not a load"),
    ("--memfree", "inf", "not a size"),
    ("--memfree", "1e999", "not a size"),
    ("--memfree", "-1G", "not a size"),
    ("--memfree", "2X", "not a size"),
    ("--memfree", "", "not a size"),
    ("--shuffle", "-3", "not a whole number of at least 0"),
]  # fmt: skip


@pytest.mark.parametrize(("option", "value", "words"), [*WRONG, *WRONG_OURS])
def test_a_wrong_value_is_named_with_what_is_allowed(option, value, words, capsys):
    joined = f"{option}={value}" if option.startswith("--") else option + value
    with pytest.raises(SystemExit) as ended:
        ours(joined, "Tasks")
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert f"argument {option}" in said or f"/{option}" in said
    assert f"'{value}'" in said
    assert words in said


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("1.5", 1.5), ("90s", 90), ("2m", 120), ("1.5h", 5400), ("7d", 604800),
     ("1H", 3600)],
)
def test_a_duration_may_have_its_unit(text, number):
    assert arguments.seconds(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("1000", 1000), ("1k", 1024), ("500M", 500 << 20), ("2GB", 2 << 30),
     ("1.5T", 3 << 39)],
)
def test_a_size_may_have_its_unit(text, number):
    assert arguments.size(text) == number


@given(st.text(max_size=12) | st.floats().map(str) | st.integers().map(str))
@pytest.mark.parametrize(
    "read",
    [arguments.positive, arguments.count, arguments.seconds, arguments.size, arguments.cores,
     arguments.load, arguments.seed],
)  # fmt: skip
def test_whatever_is_given_as_a_number_is_read_or_refused_in_words(read, text):
    with contextlib.suppress(argparse.ArgumentTypeError):
        assert math.isfinite(read(text))


# -- what does not go together ------------------------------------------------------------

PAIRS = [
    ("-s localhost:1 -k true", "--retire-cmd"),
    ("-s localhost:1 --retire-cmd=", "--retire-cmd"),
    ("-r a --force-resume --by-text", "--by-text"),
    ("-R --force-resume --by-text", "--by-text"),
]
OUR_PAIRS = [
    ("-s localhost:1 -j 2", "--jobs"),
    ("--print --json", "--json"),
    ("--keep-order", "--print"),
    ("--tag", "--print"),
    ("--shuffle -", "--shuffle"),
]


@pytest.mark.parametrize(("words", "named"), [*PAIRS, *OUR_PAIRS])
def test_options_that_do_not_go_together_are_refused(words, named):
    chosen = words.split()
    with pytest.raises(UsageError) as refused:
        ours(*chosen, *([] if "-" in chosen else ["Tasks"]))
    assert named in refused.value.what
    assert refused.value.exit_status == 2


NOT_YET = [
    "-w", "--web", "--status-server", "--taskcommand prog",
    "--taskserver", "--taskserver h:1", "--kvsserver h:1",
]  # fmt: skip


@pytest.mark.parametrize("words", NOT_YET)
def test_what_is_not_built_yet_is_refused_by_name(words):
    with pytest.raises(UsageError, match="is not there yet") as refused:
        options(*words.split(), *(() if words.startswith("--task") else ("Tasks",)))
    named = words.split()[0]
    assert named in refused.value.what or named == "--web"
    assert refused.value.kept == "nothing was started"


def test_a_list_is_required():
    with pytest.raises(UsageError, match="a TASKFILE is required"):
        options("-s", "localhost:1")


# -- the whole command --------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", ["--nonsense Tasks", "-s localhost:1", "Tasks More", "-t x Tasks", "-w Tasks"]
)
def test_a_usage_error_is_status_2_with_the_usage_on_standard_error(words, capsys):
    try:
        status = run.main(words.split(), is_compatible=True)
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr()
    assert status == 2
    assert said.out == ""
    assert said.err.startswith("usage: disBatch ")
    assert "disBatch: error: " in said.err


def said_by_overnight_run(words, capsys):
    try:
        status = run.main(words.split())
    except SystemExit as ended:
        status = ended.code
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    return said.err


HELP = "overnight run --help lists the options"


@pytest.mark.parametrize(
    ("words", "what", "do"),
    [
        ("--tmeout 5 Tasks", "there is no option --tmeout", "did you mean --timeout?"),
        ("--tmeout=5 Tasks", "there is no option --tmeout", "did you mean --timeout=?"),
        ("--nonsense Tasks", "there is no option --nonsense", ""),
        ("Tasks More", "one too many: More", "quote a name with blanks in it"),
        ("--shuffle 5 Tasks", "the list is 5, and Tasks is one too many",
         "to give --shuffle a seed, write --shuffle=5"),
        ("-t x Tasks", "argument -t/--tasksPerNode: 'x' is not a whole number of at least 1", ""),
        ("--json --print Tasks", "--print and --json both write to standard output: give one", ""),
        ("-w Tasks", "-w (the web page) is not there yet", ""),
        ("", "a TASKFILE is required: a list of tasks, or - for standard input", ""),
    ],
)
def test_a_usage_error_of_ours_is_what_and_do_and_no_usage_text(words, what, do, capsys):
    assert said_by_overnight_run(words, capsys) == (
        f"overnight run: error: {what}\n  do:    {f'{do}  ({HELP})' if do else HELP}\n"
    )


@pytest.mark.parametrize("option", ["--taskserver", "--kvsserver"])
def test_a_list_that_is_taken_for_a_server_is_said_to_be_a_file(option, tmp_path, capsys):
    path = tmp_path / "Tasks"
    path.write_text("true\n")
    said = said_by_overnight_run(f"{option} {path}", capsys)
    assert said == (
        f"overnight run: error: {option} takes HOST:PORT, and {path} is a file: no list is named\n"
        f"  do:    for a list in a file leave {option} out  ({HELP})\n"
    )


def test_the_other_verbs_say_it_alike(capsys):
    for verb in (attach, report, resume):
        name = f"overnight {verb.__name__.rpartition('.')[2]}"
        with pytest.raises(SystemExit) as ended:
            verb.main(["--nonsense", "P"])
        assert ended.value.code == 2
        assert capsys.readouterr().err == (
            f"{name}: error: there is no option --nonsense\n"
            f"  do:    {name} --help lists the options\n"
        )


@pytest.mark.parametrize(
    "words",
    ["-S -s localhost:1 Tasks", "-S -E V Tasks", "-S -k true Tasks", "-S -k= Tasks",
     "--mailFreq 3 Tasks"],
)
def test_what_disbatch_answers_with_its_help_is_answered_so(words, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(words.split(), is_compatible=True)
    said = capsys.readouterr()
    assert ended.value.code == 1
    assert said.out.startswith("usage: disBatch ")
    assert "--context-task-limit" in said.out
    assert said.err == ""


@pytest.mark.parametrize(("is_compatible", "name"), [(True, "disBatch"), (False, "overnight run")])
def test_the_version_names_the_command(is_compatible, name, capsys):
    with pytest.raises(SystemExit) as ended:
        run.main(["--version"], is_compatible=is_compatible)
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"{name} ")


@pytest.mark.parametrize("text", ["head", "head:", ":x", "head:70000", "a b:0", "head:-1"])
def test_an_address_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="HOST:PORT"):
        options("--use-address", text, "Tasks")

"""``overnight run`` and ``disBatch``: run a list."""

from __future__ import annotations

import argparse
import gc
import os
import sys

from overnight.cli.arguments import add_arguments, options_of, parse, version_text
from overnight.cli.exit_status import OK, compatible_status, own_status
from overnight.cli.parser import Parser, error_text
from overnight.core.verdict import COMPLETE
from overnight.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TextIO

    from overnight.cli.interrupts import Interrupts
    from overnight.core.verdict import Verdict
    from overnight.model.options import RunOptions
    from overnight.observers.jsonlines import JsonObserver
    from overnight.observers.progress import ProgressObserver
    from overnight.ports import Observer, Screen
    from overnight.wiring import Plan, Run

NO_TASKS = "No tasks to run."
SOME_FAILED = "Some tasks failed with non-zero exit codes -- please check the logs"


def main(arguments: Sequence[str], is_compatible: bool = False) -> int:
    """Parse, run, and say how it ended; returns the exit status."""
    parser = _parser(is_compatible)
    parsed = parse(parser, arguments, is_compatible)
    _ask_for_help_as_disbatch_does(parser, parsed)
    try:
        options = options_of(parsed, is_compatible)
    except UsageError as error:
        return _say_usage_error(parser, error)
    if options.retry and not options.resume_from and not is_compatible:
        print(f"{parser.prog}: -R, --retry does nothing without -r; to try tasks again that fail,"
              " say how often: --retries N", file=sys.stderr)
    for name in ("mailTo", "reissue_after"):
        if getattr(parsed, name) is not None:
            print(f"{parser.prog}: --{name.replace('_', '-')} is not there yet: the run goes on"
                  " without it", file=sys.stderr)
    if getattr(parsed, "dry_run", False):
        from overnight.cli.dry_run import show

        return show(options)
    return run(options, detaches=getattr(parsed, "detach", False))


def _parser(is_compatible: bool) -> argparse.ArgumentParser:
    program = "disBatch" if is_compatible else "overnight run"
    make = argparse.ArgumentParser if is_compatible else Parser
    parser = make(prog=program, description="Run a list of tasks, one record each.")
    parser.add_argument("--version", action="version", version=version_text(program))
    add_arguments(parser, is_compatible)
    return parser


def _say_usage_error(parser: argparse.ArgumentParser, error: UsageError) -> int:
    if isinstance(parser, Parser):
        sys.stderr.write(error_text(parser.prog, error.what, error.do))
    else:
        parser.print_usage(sys.stderr)
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
    return error.exit_status


def _ask_for_help_as_disbatch_does(
    parser: argparse.ArgumentParser, parsed: argparse.Namespace
) -> None:
    """Combinations that disBatch answers with its help text and status 1."""
    starts_bare = parsed.startup_only and (
        parsed.ssh_node or parsed.env_resource or parsed.retire_cmd is not None
    )
    if starts_bare or (parsed.mailFreq is not None and parsed.mailTo is None):
        parser.print_help()
        sys.exit(1)


GARBAGE_THRESHOLD = 20_000
"""A driver makes and forgets objects by the thousand, hardly any in a cycle: looking for
those after every 700 would cost it a tenth of its time."""


def run(options: RunOptions, *, detaches: bool = False) -> int:
    """Run a list with these options; returns the exit status."""
    from overnight.cli.interrupts import Interrupts
    from overnight.wiring import Plan, Run

    interrupts = Interrupts(
        say, is_compatible=options.is_compatible, grace_s=options.kill_after,
        is_in_slurm="SLURM_JOB_ID" in os.environ,
    )
    plan = Plan(options)
    interrupts.hold()
    if detaches:
        from overnight.cli.detach import detach

        if (status := detach(options, plan.files)) is not None:
            return status
    show = Showing(plan, Run(plan))
    if options.startup_only:
        print(f"Run this script to add compute contexts:\n   {plan.files.utility_script}",
              flush=True)
    if detaches:
        from overnight.cli.detach import let_go

        let_go()
    verdict = show.drive(interrupts)
    status = show.status(verdict)
    interrupts.leave(status)
    show.say_verdict(verdict)
    return status


class Showing:
    """A run with its screen: what is shown while it goes on, and at its end."""

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._options = plan.options
        self._json: JsonObserver | None = None
        self._progress: ProgressObserver | None = None
        self._screen: Screen | None = None

    def drive(self, interrupts: Interrupts) -> Verdict:
        """Run to the verdict; signals are stops of it meanwhile."""
        driver = self._run.prepare(self._observers())
        interrupts.drive(driver)
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        gc.enable()
        verdict = self._run.drive()
        interrupts.end()
        return verdict

    def status(self, verdict: Verdict) -> int:
        """What the command ends with."""
        options = self._options
        if self._found_all_done(verdict) and not options.exit_code:
            return OK
        if options.is_compatible:
            return compatible_status(verdict, counts_failures=options.exit_code)
        return own_status(verdict)

    def _found_all_done(self, verdict: Verdict) -> bool:
        """Whether a resume met a finished run: nothing of the list had to be started."""
        counts = self._run.scheduler.counts
        ran = counts.done or counts.failed or counts.cut
        return verdict.ending == COMPLETE and bool(counts.skipped) and not ran

    # -- while it runs ------------------------------------------------------------------

    def _observers(self) -> list[Observer]:
        options = self._options
        observers: list[Observer] = []
        if options.json:
            from overnight.observers.jsonlines import JsonObserver

            self._json = JsonObserver(_writer(sys.stdout))
            self._json.say("started", prefix=self._run.files.prefix,
                           total=self._plan.source.total, slots=self._plan.slot_count)
            observers.append(self._json)
        if options.print:
            from overnight.observers.printer import PrintObserver

            observers.append(PrintObserver(
                self._run.output_dir or "", 1, 2, keeps_order=options.keep_order,
                tags=options.tag, removes=options.output is None,
            ))
        if self._shows_screen():
            from overnight.watch.screen import PlainScreen, open_screen

            # A live block would draw over what tasks print on the same terminal.
            self._screen = PlainScreen(sys.stderr) if options.print else open_screen(sys.stderr)
        else:
            observers.append(Voice())
        if self._screen is not None or not options.is_compatible:
            from overnight.observers.progress import ProgressObserver

            source = self._plan.source
            self._progress = ProgressObserver(
                self._run.scheduler, self._screen, lambda: source.total
            )
            observers.append(self._progress)
        return observers

    def _shows_screen(self) -> bool:
        if self._options.quiet:
            return False
        return not self._options.is_compatible or sys.stderr.isatty()

    # -- at its end ---------------------------------------------------------------------

    def say_verdict(self, verdict: Verdict) -> None:
        """Say how it was."""
        from overnight.cli.ending import all_done_text, closing_text, facts
        from overnight.cli.go_on import GoOn

        counts = self._run.scheduler.counts
        go_on = GoOn(self._run.files, is_fed=self._plan.is_stream)
        self._count_what_is_left(verdict)
        if verdict.error is not None:
            say(str(verdict.error))
        earlier = self._plan.earlier
        if earlier is not None and self._options.by_text and not self._plan.has_compared:
            say(earlier.matches())
        is_empty = not (counts.done or counts.failed or counts.skipped or counts.cut)
        if verdict.ending == COMPLETE and is_empty:
            say(NO_TASKS)
        elif self._found_all_done(verdict):
            if not self._options.quiet:
                say(all_done_text(counts.skipped, counts.skipped_failed, go_on))
        elif self._progress is not None and not self._options.quiet:
            log = self._options.logfile or go_on.files.driver_log
            say(closing_text(self._progress.summary, verdict, go_on,
                             colour=_has_colour(sys.stderr),
                             warnings=list(self._progress.warned.lines(log))))
        elif verdict.has_tasks_left or verdict.ending != COMPLETE:
            say(closing_text(None, verdict, go_on, colour=False))
        if self._options.is_compatible and self._options.exit_code and verdict.has_failures:
            say(SOME_FAILED)
        if self._json is not None and self._progress is not None:
            self._json.finish(facts(self._progress.summary, verdict, go_on))

    def _count_what_is_left(self, verdict: Verdict) -> None:
        from overnight.cli.ending import tasks_without_row

        if self._progress is not None:
            summary = self._progress.summary
            summary.without_row = tasks_without_row(self._plan.source.total, summary, verdict)


class Voice:
    """Says warnings and errors on standard error where no screen is shown."""

    def recorded(self, entries: object) -> None:
        """Nothing to say."""

    def assigned(self, engine: int, attempts: object) -> None:
        """Nothing to say."""

    def told(self, level: str, text: str) -> None:
        """Say it."""
        if level in ("warning", "error"):
            say(text)

    def turn(self, now: float) -> None:
        """It never wants to be called."""

    def close(self) -> None:
        """Nothing to leave."""


def say(text: str) -> None:
    """A line for a person; a terminal that has gone is no reason to end a run."""
    try:
        os.write(2, text.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        return


def _writer(stream: TextIO) -> Callable[[str], None]:
    def write(text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except OSError:
            return  # nobody reads any more: the run goes on

    return write


def _has_colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR")

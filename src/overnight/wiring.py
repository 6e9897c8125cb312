"""Putting a run together: the only place that knows every plug.

``plan`` looks at everything and touches nothing: a mistake of the user's is found
before a file is made. ``Run`` then owns the prefix, makes the files and drives.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from contextlib import suppress

import overnight
from overnight.contexts.choose import choose_contexts, divided_variables
from overnight.contexts.noted import note_again
from overnight.contexts.settings import Settings
from overnight.core.allocate import NodeShare
from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.core.summary.rerun import shell_word
from overnight.core.verdict import NO_RECORD
from overnight.driver.describe import Description, read_description
from overnight.driver.fresh import made_or_removed, write_script
from overnight.driver.list_head import refuse_what_is_no_list
from overnight.driver.lock import PrefixLock, is_gone, read_owner, refuse_owned
from overnight.driver.loop import Driver, Errand, Notice
from overnight.driver.output_folder import check_output_folder
from overnight.driver.package import pack
from overnight.driver.prefix import check_names, name_tasks, new_files
from overnight.driver.record import Record
from overnight.errors import OvernightError, PrefixTaken, ResumeRefused, UsageError
from overnight.formats.hostport import parse_use_address
from overnight.formats.slurm import batch_job
from overnight.formats.taskfile import TaskReader
from overnight.formats.utilscript import script_text
from overnight.guard.private import private_directory
from overnight.model.roles import CONTROL, ENGINE
from overnight.model.run import RunFiles, prefix_of_status
from overnight.model.task import PerEngine
from overnight.observers.log import LogObserver
from overnight.observers.runlog import RunLog
from overnight.ports import Survivors
from overnight.sources.listfile import ListFile
from overnight.sources.stream import Stream, open_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from overnight.contexts.choose import PlannedContext
    from overnight.contexts.noted import NotedEngine
    from overnight.contexts.ssh import SshEngine
    from overnight.core.verdict import Verdict
    from overnight.driver.joining import Reception
    from overnight.model.messages import Setup
    from overnight.model.options import RunOptions
    from overnight.net.listener import Arrival
    from overnight.ports import Allocation, Context, Observer, Source
    from overnight.sources.earlier import Earlier

STDIN = 0
LISTENS_AFTER_S = 2.0
"""Making a certificate and a door costs a tenth of a second of CPU: no short run pays for it."""

MOST_COMMANDS = 4096
"""Items looked at for per-engine commands, which stand before the first task."""

NOBODY_WRITES_THERE = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Where no lock can be made, because we may only read there, no driver of ours is either."""


class Plan:
    """A run that could start.

    Attributes:
        options: As given.
        is_stream: The list can be read once only.
        files: Where its files will lie.
        contexts: What gives it slots.
        goes_on: It continues an earlier run's status file.
        earlier: What earlier runs recorded, where this one resumes any.
        has_compared: The whole list has been compared with that.
        notices: What was noticed on the way, for a person.
    """

    def __init__(self, options: RunOptions) -> None:
        """Look at everything a run needs.

        Raises:
            OvernightError: It cannot be run as it stands; nothing was made or started.
        """
        self.is_stream = _is_stream(options.task_file or "")
        self.notices: list[str] = []
        self.options = options = self._goes_on_with_job(options)
        self.notify: Callable[[str], None] = self.notices.append
        self.contexts: list[PlannedContext] = (
            [] if options.startup_only else choose_contexts(options, os.environ)
        )
        self.notices += [note for context in self.contexts for note in context.notes]
        self.files = new_files(options.prefix, options.task_file or "-")
        own = os.path.realpath(self.files.status)
        self.goes_on = own in [os.path.realpath(path) for path in options.resume_from]
        if not self.goes_on:
            refuse_owned(self.files.lock)
            _refuse_taken(self.files)
        check_output_folder(options.output)
        check_names(self.files, options.task_file or "-", options.resume_from, options.logfile)
        self.source: Source = self._open_list()
        self.earlier: Earlier | None = None
        self.has_compared = False
        if options.resume_from:
            self._compare_with_earlier()

    def _goes_on_with_job(self, options: RunOptions) -> RunOptions:
        """The options, or those of a resume where Slurm has started this job again."""
        if not os.environ.get("SLURM_RESTART_COUNT"):
            return options
        from overnight.driver.requeued import run_of_this_job

        earlier = run_of_this_job(options, os.environ)
        if earlier is None:
            return options
        self.notices.append(
            f"Slurm has started this job again: it goes on with {earlier.status}"
        )
        options = type(options)(**options.chosen())
        options.prefix, options.resume_from = earlier.prefix, (earlier.status,)
        return options

    def _open_list(self) -> Source:
        path = self.options.task_file
        is_lenient = self.options.directives == "lenient"
        if path == "-":
            refuse_what_is_no_list("standard input", STDIN)
            return Stream(STDIN, "standard input", is_lenient=is_lenient, warn=self._warn)
        try:
            if self.is_stream and self.options.shuffle is None:
                return open_stream(path or "", is_lenient=is_lenient, warn=self._warn)
            source = ListFile(path or "", is_lenient=is_lenient, warn=self._warn)
            refuse_what_is_no_list(path or "")
        except OSError as error:
            raise UsageError(f"can't open {path!r}: {error.strerror}",
                             kept="nothing was started") from error
        source.scan()
        if self.options.shuffle is None:
            return source
        from overnight.sources.shuffled import Shuffled

        return Shuffled(
            source, self.options.shuffle, is_lenient=is_lenient, warn=self._warn
        )

    def _warn(self, text: str) -> None:
        self.notify(text)

    @property
    def slot_count(self) -> int:
        """Slots of all its nodes, before any of them has said less."""
        return sum(share.slots for context in self.contexts for share in context.nodes)

    def check_again(self) -> None:
        """Look whether the status files are what they were when the plan was made.

        Raises:
            PrefixTaken: Another driver has written to one since.
        """
        if not self.goes_on:
            _refuse_taken(self.files)
        for path, size in self.earlier.sizes() if self.earlier is not None else ():
            if _size(path) != size:
                raise PrefixTaken(
                    "another driver has added rows in this moment", where=path,
                    kept="nothing was started", do="resume once more",
                )

    def commands(self) -> dict[tuple[bool, int], PerEngine]:
        """The list's per-engine commands by (START?, number); none where it is a stream."""
        if self.is_stream:
            return {}
        source = self._open_again()
        try:
            items, _ = source.read(MOST_COMMANDS)
        finally:
            source.close()
        return {(one.at_start, one.number): one for one in items if type(one) is PerEngine}

    def _open_again(self) -> ListFile:
        return ListFile(self.options.task_file or "", is_lenient=True, warn=lambda _: None)

    def _compare_with_earlier(self) -> None:
        from overnight.sources.earlier import Earlier
        from overnight.sources.resumed import Resumed

        options = self.options
        self.earlier = Earlier(
            options.resume_from, retry=options.retry, force=options.force_resume,
            by_text=options.by_text, own=self.files.status if self.goes_on else None,
        )
        if not self.is_stream and self.earlier.row_count <= options.resume_check_limit:
            self._check_list(self.earlier)
            self.has_compared = True
            if options.by_text:
                self.notices.append(self.earlier.matches())
        elif not self.is_stream:
            self.notices.append(
                f"{self.earlier.row_count} rows of earlier runs: the list is compared with them"
                " while it is read, not beforehand"
            )
        self.source = Resumed(self.source, self.earlier)

    def _check_list(self, earlier: Earlier) -> None:
        """Compare the list as it is now: the very file that is read later, where that is one."""
        source = self.source if isinstance(self.source, ListFile) else self._open_again()
        try:
            earlier.check(TaskReader().read_blocks(source.blocks()))
        finally:
            if source is not self.source:
                source.close()


class Run:
    """A run that owns its prefix, from its files to its verdict."""

    def __init__(self, plan: Plan) -> None:
        """Take the prefix, find what outlived an earlier driver, and make the files.

        Raises:
            PrefixTaken: Another driver has the prefix, or has had it since the plan was made.
            ResumeRefused: Tasks of an earlier driver may still run.
            OvernightError: A file cannot be made. None is left half made.
        """
        self.plan = plan
        self.files = plan.files
        self.scheduler = Scheduler(_policy(plan.options, plan.files))
        self.started_at = time.time()
        self._earlier = _runs_of(plan.options.resume_from)
        self._locks: list[PrefixLock] = []
        self._driver: Driver | None = None
        self._reception: Reception | None = None
        try:
            try:
                self._take_locks()
                self._take_over()
            except BaseException:
                self._release_locks()
                raise
        except OSError as error:
            raise OvernightError(
                f"the run's files cannot be made: {error.strerror}",
                where=error.filename or self.files.prefix, kept="nothing was started",
                do="free space there, or choose another place with -p",
            ) from error

    def _take_locks(self) -> None:
        """Own the prefix, and those of the runs resumed: their tasks are this run's now."""
        self._take_lock(self.files)
        for files in self._earlier:
            if files.prefix == self.files.prefix:
                continue
            _refuse_while_driven(files)
            try:
                self._take_lock(files)
            except PrefixTaken:
                _refuse_while_driven(files)
                raise
            except OSError as error:
                if error.errno not in NOBODY_WRITES_THERE:
                    raise

    def _take_lock(self, files: RunFiles) -> None:
        lock = PrefixLock(files.lock)
        lock.take()
        self._locks.append(lock)

    def _release_locks(self) -> None:
        for lock in reversed(self._locks):
            lock.release()

    def _take_over(self) -> None:
        self.plan.check_again()
        self.generation = 1 + max(map(_generation, self._earlier), default=0)
        settings = Settings(
            self.plan.options, self.files, self.generation,
            name_tasks(self.plan.options.task_file or "-"), self.output_dir,
        )
        self._settings = settings
        self._contexts: list[Context] = [each.make(settings) for each in self.plan.contexts]
        # By what they can do: importing a manager's context costs a start that has none 10 ms.
        self._allocations: list[Allocation] = [
            each for each in self._contexts  # type: ignore[misc]  # it can give back: it is one
            if hasattr(each, "give_back")
        ]
        for each in self._allocations:
            self.scheduler.lend(each.label, each.gives_back)
        with made_or_removed(self._paths()):
            pack(self.files.engine_file)  # engines on other machines are looked for with it
            self._survivors = self._find_survivors()
            self._make_files()

    def _paths(self) -> list[str]:
        """Files that are made before the first task; the status file is the last."""
        files, logfile = self.files, self.plan.options.logfile
        return [
            files.engines, files.description, logfile or files.driver_log, files.utility_script,
            files.engine_file, files.tasks, files.status,
        ]

    def _find_survivors(self) -> Survivors:
        if not self._earlier:
            return Survivors()
        from overnight.contexts.survivors import find_survivors

        return find_survivors(
            self.files, self._earlier, self.plan.options.resume_from, self.plan.commands(),
            self._setup_again, self._reach_again,
        )

    def _reach_again(self, noted: NotedEngine) -> SshEngine:
        from overnight.contexts.ssh import Ssh, SshEngine

        options = self.plan.options
        ssh = Ssh(self.files, options.remote_python, divided_variables(options))
        return SshEngine(ssh, noted.ssh, "attached", self._setup_again(noted), noted)

    def _setup_again(self, noted: NotedEngine) -> Setup:
        """An engine that is taken over keeps its door and its spools."""
        shares = [(each, share) for each in self._contexts for share in each.nodes]
        if not shares:
            return self._settings.setup(
                noted.rank, NodeShare(noted.node, 1, 1), (), noted.attach, noted.spools
            )
        context, share = next((one for one in shares if one[1].node == noted.node), shares[0])
        return context.setup_again(share, noted.rank, noted.attach, noted.spools)

    def _make_files(self) -> None:
        """Make them; a status file that is there says that all others are."""
        options, files = self.plan.options, self.files
        kept = type(options)(**options.chosen())
        # What came through a pipe is as little to be had again as standard input.
        kept.task_file = (
            "-" if self.plan.is_stream else os.path.realpath(options.task_file or "")
        )
        kept.prefix = files.prefix
        kept.resume_from = tuple(map(os.path.realpath, options.resume_from))
        self._description = Description(
            kept, os.getcwd(), self.generation, self.plan.source.total, self.started_at,
            job=batch_job(os.environ).partition("/")[0],
        )
        self._description.write(files)
        self._log = RunLog(options.logfile or files.driver_log, options.loglevel)
        write_script(files.utility_script, script_text(
            files.prefix, sys.executable, os.path.dirname(os.path.abspath(overnight.__path__[0]))
        ))
        self._record = Record(
            files, os.uname().nodename, lambda flushed: self.driver.post(flushed),
            goes_on=self.plan.goes_on, has_header=options.status_header,
        )

    @property
    def driver(self) -> Driver:
        """The driver; made by ``prepare``."""
        if self._driver is None:
            raise OvernightError("the run was not prepared")
        return self._driver

    def prepare(self, observers: Sequence[Observer]) -> Driver:
        """Make the driver."""
        plan = self.plan
        self._driver = Driver(
            self.scheduler, plan.source, self._record, self._contexts,
            [LogObserver(self._log), *observers], self._measures_host, self._survivors,
            allocations=self._allocations, **self._for_joining(),
        )
        self._open_control(self._driver)
        for notice in plan.notices:
            self._driver.tell("warning", notice)
        plan.notify = lambda text: self.driver.tell("warning", text)
        return self._driver

    def _for_joining(self) -> dict[str, Any]:
        """What the driver needs for engines that call it."""
        from overnight.contexts.joined import Joined

        joins = self._joins = Joined(
            self._settings, self._survivors.recorded, [each.label for each in self._contexts]
        )
        options = self.plan.options
        opens_later = options.is_compatible and not options.listen
        return {
            "joins": joins,
            "awaited": [joins.again(noted) for noted in self._survivors.awaited],
            "opens_door": self._open_door_later if opens_later else None,
        }

    @property
    def reception(self) -> Reception:
        """Where others join; made when it is first asked for, and not open then."""
        if self._reception is None:
            from overnight.driver.joining import Reception

            self._reception = Reception(
                self.files, self.generation, os.getcwd(),
                parse_use_address(self.plan.options.use_address or ":0"), self._on_arrival,
                lambda level, text: self.driver.post(Notice(level, text)),
            )
        return self._reception

    def _open_control(self, driver: Driver) -> None:
        from overnight.driver.control import Control, control_path
        from overnight.driver.pool_verbs import PoolVerbs

        self._verbs = PoolVerbs(driver, self._add)
        driver.control = Control(driver, self._verbs.verbs)
        try:
            driver.control.open(control_path(private_directory(), self.files.prefix))
        except OSError as error:
            driver.tell("info", f"nobody here can ask this driver: {error.strerror}")

    def _add(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """``overnight pool add``: start further engines, and let others join from now on.

        Raises:
            OvernightError: They cannot be started.
        """
        options = type(self.plan.options)(**self.plan.options.chosen())
        options.jobs, options.startup_only = None, False
        options.ssh_node = tuple(map(str, question["ssh_node"]))
        options.cpus_per_task = question["cpus_per_task"] or options.cpus_per_task
        options.tasks_per_node = question["tasks_per_node"] or options.tasks_per_node
        started, notes = 0, []
        for planned in choose_contexts(options, os.environ):
            planned.label = self._joins.label(str(question["label"]))
            context = planned.make(self._settings)
            notes += list(planned.notes)
            started += self.driver.add_context(context, int(question["task_limit"]))
            if question["until"] is not None:
                self._verbs.note_loan(context.label, float(question["until"]))
        self.reception.open()
        return {"count": started, "notes": notes}

    def _open_door_later(self) -> None:
        """DisBatch lets others join without being asked to; a short run is not to pay for it."""
        is_asked = self.plan.options.use_address is not None
        self.reception.open(LISTENS_AFTER_S, is_asked=is_asked)

    def _on_arrival(self, arrival: Arrival) -> None:
        """In the door's thread: somebody who knows the secret is here."""
        driver = self.driver
        if arrival.role == ENGINE:
            driver.post(Errand(lambda: driver.arrived(arrival.link, arrival.peer)))
        elif arrival.role == CONTROL and driver.control is not None:
            control = driver.control
            driver.post(Errand(lambda: control.arrived(arrival.link)))
        else:
            arrival.link.close()  # nobody of that role is served

    @property
    def _measures_host(self) -> bool:
        return self.plan.options.load is not None or self.plan.options.memfree is not None

    @property
    def output_dir(self) -> str | None:
        """Where output of attempts is kept, if it is."""
        options = self.plan.options
        if options.output is not None:
            return os.path.abspath(options.output)
        return f"{self.files.prefix}_print" if options.print else None

    def drive(self) -> Verdict:
        """Run the list to its verdict, and leave the prefix as a finished run's.

        Where reports could not be recorded, or an engine would not be taken over and lives,
        the engines that keep reports stay noted: the next resume collects them.
        """
        try:
            options = self.plan.options
            is_awaited = self._survivors.awaited or self._allocations
            if options.listen or options.startup_only or is_awaited:
                self.reception.open()
            verdict = self.driver.run()
            lives = any(not engine.is_gone() for engine in self._survivors.engines)
            left = [each.noted for each in self.driver.left_behind]
            if verdict.ending != NO_RECORD and not lives:
                self._tidy(left)
            self._note_ending(verdict)
            return verdict
        finally:
            if self._reception is not None:
                self._reception.close()
            self._release_locks()

    def _note_ending(self, verdict: Verdict) -> None:
        """Say beside the run how it ended: to those who look later it was not killed."""
        with suppress(OSError):  # a full disk; the rows are what counts
            self._description.add_ending(self.files, verdict)

    def _tidy(self, left: Sequence[NotedEngine]) -> None:
        """Remove what only a living run needs, and what its rows make superfluous.

        Args:
            left: Engines that may live on with tasks: these alone stay noted.
        """
        read = (*self._survivors.spools, *self.driver.spools_read)
        kept = {spool for noted in left for spool in noted.spools}
        with suppress(OSError):
            if left:
                note_again(self.files, left)
            else:
                os.unlink(self.files.engines)
        for path in (self.files.engine_file, *read):
            if path not in kept:
                with suppress(OSError):
                    os.unlink(path)


def _is_stream(path: str) -> bool:
    """Whether a list can be read once only: standard input, a pipe, ``<(command)``."""
    return path == "-" or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    )


def _policy(options: RunOptions, files: RunFiles) -> Policy:
    limit = 1 if options.fail_fast else options.max_failures
    return Policy(
        max_failures=limit, fails_fast=options.fail_fast, retries=options.retries,
        crash_limit=options.crash_limit, gives_out_lost=not options.is_compatible,
        task_limit=options.context_task_limit, delay_s=options.delay, load_limit=options.load,
        memory_floor=options.memfree,
        starts_bare=options.startup_only,
        how_to_add=f"{shell_word(files.utility_script)} -s HOST:COUNT",
        how_to_forget=f"overnight pool forget {shell_word(files.prefix)} HOST",
    )


def _refuse_taken(files: RunFiles) -> None:
    if os.path.lexists(files.status):
        raise PrefixTaken(
            "the status file of an earlier run lies there", where=files.status,
            kept="nothing was started, the file is untouched",
            do=f"go on with that run by adding -r {files.status}, or choose another prefix"
               " with -p",
        )


def _runs_of(status_files: Sequence[str]) -> list[RunFiles]:
    """The runs whose status files these are, each once."""
    prefixes = (prefix_of_status(os.path.realpath(path)) for path in status_files)
    return [RunFiles(prefix) for prefix in dict.fromkeys(prefixes) if prefix is not None]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _generation(files: RunFiles) -> int:
    """Of the last driver of a run; 0 where none of ours is known.

    A crash may leave a description that cannot be read. Engines obey the highest number
    they have seen, and the time in seconds is above any that was counted up.
    """
    try:
        description = read_description(files)
    except ResumeRefused:
        return int(time.time())
    return description.generation if description else 0


def _refuse_while_driven(files: RunFiles) -> None:
    owner = read_owner(files.lock)
    if owner is not None and not is_gone(owner):
        raise ResumeRefused(
            f"this run still goes on: process {owner['pid']} on {owner['host'].split('/')[0]}",
            where=files.prefix, kept="nothing was started",
            do=f"watch it:  overnight attach {shell_word(files.prefix)}  and resume when it has"
               " ended",
        )

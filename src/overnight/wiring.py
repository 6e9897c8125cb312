"""Putting a run together: the only place that knows every plug.

``plan`` looks at everything and touches nothing: a mistake of the user's is found
before a file is made. ``Run`` then owns the prefix, makes the files and drives.
"""

from __future__ import annotations

import os
import stat
import time

from overnight.contexts.choose import local_slots
from overnight.contexts.local import LocalContext
from overnight.contexts.survivors import find_survivors
from overnight.core.policy import Policy
from overnight.core.scheduler import Scheduler
from overnight.driver.describe import Description, read_description
from overnight.driver.lock import PrefixLock
from overnight.driver.log import RunLog
from overnight.driver.loop import Driver, Survivors
from overnight.driver.package import pack
from overnight.driver.prefix import name_tasks, new_files
from overnight.driver.record import Record
from overnight.errors import OvernightError, PrefixTaken, UsageError
from overnight.formats.utilscript import script_text
from overnight.model.messages import Setup
from overnight.model.run import RunFiles, prefix_of_status
from overnight.model.task import Task
from overnight.observers.log import LogObserver
from overnight.sources.listfile import ListFile
from overnight.sources.stream import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from overnight.contexts.choose import LocalSlots
    from overnight.core.verdict import Verdict
    from overnight.model.options import RunOptions
    from overnight.ports import Observer, Source
    from overnight.sources.earlier import Earlier

STDIN = 0


class Plan:
    """A run that could start.

    Attributes:
        options: As given.
        files: Where its files will lie.
        slots: What this machine gives it.
        goes_on: It continues an earlier run's status file.
        notices: What was noticed on the way, for a person.
    """

    def __init__(self, options: RunOptions) -> None:
        """Look at everything a run needs.

        Raises:
            OvernightError: It cannot be run as it stands; nothing was made or started.
        """
        self.options = options
        self.notices: list[str] = []
        self.slots: LocalSlots = local_slots(options, os.environ)
        self.notices += self.slots.notes
        self.files = new_files(options.prefix, options.task_file or "-")
        own = os.path.realpath(self.files.status)
        self.goes_on = own in [os.path.realpath(path) for path in options.resume_from]
        if os.path.lexists(self.files.status) and not self.goes_on:
            raise _taken(self.files)
        self.source: Source = self._open_list()
        self.earlier: Earlier | None = None
        if options.resume_from:
            self._compare_with_earlier()

    def _open_list(self) -> Source:
        path = self.options.task_file
        is_lenient = self.options.directives == "lenient"
        if path == "-":
            return Stream(STDIN, "standard input", is_lenient=is_lenient, warn=self._warn)
        try:
            source = ListFile(path or "", is_lenient=is_lenient, warn=self._warn)
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
        self.notices.append(text)

    def _compare_with_earlier(self) -> None:
        from overnight.sources.earlier import Earlier
        from overnight.sources.resumed import Resumed

        options = self.options
        self.earlier = Earlier(
            options.resume_from, retry=options.retry, force=options.force_resume,
            by_text=options.by_text, own=self.files.status if self.goes_on else None,
        )
        if options.task_file not in (None, "-") and self.earlier.row_count <= \
                options.resume_check_limit:
            again = ListFile(options.task_file or "", is_lenient=True, warn=lambda _: None)
            try:
                self.earlier.check(_tasks_of(again))
            finally:
                again.close()
        elif options.task_file != "-":
            self.notices.append(
                f"{self.earlier.row_count} rows of earlier runs: the list is compared with them"
                " while it is read, not beforehand"
            )
        self.source = Resumed(self.source, self.earlier)


class Run:
    """A run that owns its prefix, from its files to its verdict."""

    def __init__(self, plan: Plan) -> None:
        """Take the prefix and make the files.

        Raises:
            PrefixTaken: Another driver has it.
            OvernightError: A file cannot be made.
        """
        self.plan = plan
        self.files = plan.files
        self.scheduler = Scheduler(_policy(plan.options))
        self.started_at = time.time()
        self._lock = PrefixLock(self.files.lock)
        self._driver: Driver | None = None
        try:
            self._lock.take()
            try:
                self._make_files()
            except BaseException:
                self._lock.release()
                raise
        except OSError as error:
            raise OvernightError(
                f"the run's files cannot be made: {error.strerror}", where=self.files.prefix,
                kept="nothing was started", do="choose another place with -p",
            ) from error

    def _make_files(self) -> None:
        options, files = self.plan.options, self.files
        earlier = read_description(files) if self.plan.goes_on else None
        self.generation = earlier.generation + 1 if earlier else 1
        self._record = Record(
            files, self.plan.slots.node, lambda flushed: self.driver.post(flushed),
            goes_on=self.plan.goes_on, has_header=options.status_header,
        )
        self._log = RunLog(options.logfile or files.driver_log, options.loglevel)
        _write_script(files.utility_script, script_text(files.prefix))
        pack(files.engine_file)
        kept = type(options)(**options.chosen())
        if options.task_file != "-":
            kept.task_file = os.path.realpath(options.task_file or "")
        kept.prefix = files.prefix
        Description(
            kept, os.getcwd(), self.generation, self.plan.source.total, self.started_at
        ).write(files)

    @property
    def driver(self) -> Driver:
        """The driver; made by ``prepare``."""
        if self._driver is None:
            raise OvernightError("the run was not prepared")
        return self._driver

    def prepare(self, observers: Sequence[Observer]) -> Driver:
        """Make the driver, with what outlived an earlier one.

        Raises:
            ResumeRefused: An engine of an earlier driver lives and does not answer.
        """
        plan = self.plan
        slots = plan.slots
        log = LogObserver(self._log)
        context = LocalContext(self.files, slots.label, slots.node, slots.count)
        prefixes = [prefix_of_status(os.path.realpath(path)) for path in plan.options.resume_from]
        survivors = find_survivors(
            [RunFiles(prefix) for prefix in prefixes if prefix], plan.options.resume_from,
            lambda rank: self._setup(rank, slots.count),
        ) if prefixes else Survivors()
        self._driver = Driver(
            self.scheduler, plan.source, self._record, [context], self._setup,
            [log, *observers], self._measures_host, survivors,
        )
        for notice in plan.notices:
            self._driver.tell("warning", notice)
        return self._driver

    @property
    def _measures_host(self) -> bool:
        return self.plan.options.load is not None or self.plan.options.memfree is not None

    def _setup(self, rank: int, slots: int) -> Setup:
        options, files = self.plan.options, self.files
        return Setup(
            run=files.run_id,
            name_tasks=name_tasks(options.task_file or "-"),
            generation=self.generation,
            rank=rank,
            slots=slots,
            cores_per_task=self.plan.slots.cores_per_task,
            cwd=os.getcwd(),
            variables=[],
            slot_variables=[
                [f"{name}={value}".encode("utf-8", "surrogateescape")
                 for name, value in shares.items()]
                for shares in self.plan.slots.variables
            ],
            always_shell=options.always_shell,
            late_output_s=options.late_output,
            leaves_children=options.leave_children,
            timeout_s=options.timeout,
            kill_after_s=options.kill_after,
            output_dir=self.output_dir,
            spools=[files.spool(rank), f"{_private_directory()}/{files.run_id}_{rank}.spool"],
            attach=f"{_private_directory()}/{os.urandom(8).hex()}.sock",
            keep_reports_s=options.keep_reports,
        )

    @property
    def output_dir(self) -> str | None:
        """Where output of attempts is kept, if it is."""
        options = self.plan.options
        if options.output is not None:
            return os.path.abspath(options.output)
        return f"{self.files.prefix}_print" if options.print else None

    def drive(self) -> Verdict:
        """Run the list to its verdict, and leave the prefix as a finished run's."""
        try:
            return self.driver.run()
        finally:
            self._tidy()

    def _tidy(self) -> None:
        """Remove what only a living run needs; engines that live on keep theirs."""
        for path in (self.files.engines, self.files.engine_file):
            try:
                os.unlink(path)
            except OSError:
                continue
        self._lock.release()


def _policy(options: RunOptions) -> Policy:
    limit = 1 if options.fail_fast else options.max_failures
    return Policy(
        max_failures=limit, fails_fast=options.fail_fast, retries=options.retries,
        crash_limit=options.crash_limit, gives_out_lost=not options.is_compatible,
        task_limit=options.context_task_limit, delay_s=options.delay, load_limit=options.load,
        memory_floor=options.memfree,
    )


def _tasks_of(source: ListFile) -> Iterator[Task]:
    has_ended = False
    while not has_ended:
        items, has_ended = source.read(4096)
        for item in items:
            if type(item) is Task:
                yield item


def _taken(files: RunFiles) -> PrefixTaken:
    return PrefixTaken(
        "the status file of an earlier run lies there", where=files.status,
        kept="nothing was started, the file is untouched",
        do=f"go on with that run by adding -r {files.status}, or choose another prefix with -p",
    )


def _private_directory() -> str:
    """A directory of this user's alone on this machine, for sockets and spools."""
    usual = f"/tmp/overnight-{os.getuid()}"
    for path in (usual, f"{usual}-{os.urandom(8).hex()}"):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            found = os.lstat(path)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() \
                    or found.st_mode & 0o077:
                continue  # somebody else got there first, or left it open
        return path
    return usual


def _write_script(path: str, text: str) -> None:
    """The script, whole, executable by its owner alone."""
    draft = f"{path}.{os.getpid()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
    try:
        os.write(fd, text.encode("utf-8", "surrogateescape"))
        os.fchmod(fd, 0o700)
    finally:
        os.close(fd)
    os.replace(draft, path)

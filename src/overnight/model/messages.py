"""What driver, engine and runner say to each other: the kinds of frame on a link.

Frames go over a byte stream, batched, in order. The bytes are made and read by
``formats/link``; who reacts how is decided in ``core``. Control payloads are small
mappings; attempts and reports travel as rows.

Driver to engine (an engine passes ASSIGN, RECALL and END on to its runners):

=========  =========================================================================
SETUP      mapping: how tasks are run here, and the driver's generation. Sent once
           after HELLO; again by each driver that attaches. Keys: see ``Setup``
START      rows of per-engine START and STOP commands. The engine runs the START
           ones one after the other, reports each, and says OPENED; it keeps the
           STOP ones for its end. Sent once, even when there are none, before the
           first ASSIGN
ASSIGN     rows of attempts, to be started in this order as slots come free
RECALL     ids of tasks whose attempts should not be started; answered by RECALLED
END        mapping ``ids`` (list, or None for all), ``reason``, ``signal`` (the first
           one), ``kill_after_s``, ``timed_out``: their trees are ended; each is
           reported as ``Cancelled``
ACK        a number: reports up to that sequence number are durable, forget them
CLOSE      mapping ``run_stop``: take nothing more, let what runs finish, run the
           STOP commands, say CLOSED, leave when everything is acknowledged
PING       a number, echoed by PONG
=========  =========================================================================

Engine to driver (a runner says ENDED, RECALLED and NOTICE to its engine):

=========  =========================================================================
HELLO      mapping, after the 16 magic bytes: ``link`` (version), ``version`` (of the
           package), ``run``, ``generation`` (highest seen), ``role``, ``pid``,
           ``start`` (start time of the process, clock ticks since boot), ``boot``
           (boot id), ``host``, ``cores``, ``python``, ``started`` (whether its START
           commands have run), ``closing`` (it takes nothing more), ``running`` (how many
           RUNNING rows follow). One that joins by itself adds ``join``, a mapping: ``id``
           (its own, for its life), ``label`` (of its context, or empty), ``node`` (its
           host as rows have it), ``place`` (where its process number means something),
           ``slots``, ``cores_per_task``, ``slot_variables``, ``task_limit`` (of its
           context, 0 for none), ``launch`` (whoever started it knows it by this). One that
           an ENTER has started adds ``values`` (environment variables by name), ``place``
           and ``private`` (where its door and spool may lie)
RUNNING    rows of attempts that run here, after HELLO of an engine that lived on; once
           more before TAKEN, where a driver before may have given others meanwhile
OPENED     its START commands are over: it takes tasks
ENDED      a sequence number and rows of reports
KEPT       like ENDED, each report with its attempt: what happened while no driver
           listened
PE_ENDED   like ENDED, for per-engine commands; each row says START or STOP
RECALLED   ids that were taken back before they started
NOTICE     mapping ``level``, ``text``: for the driver's log
CLOSED     the engine is done; it leaves once everything is acknowledged
TAKEN      ids of tasks in hand; of an engine that lived on: it has this driver now, and
           has said all that it kept. Until then it is alone, and may leave
PONG       the number of a PING
CANNOT     mapping ``reason``: instead of HELLO, nothing can be run here
PROOF      mapping, instead of HELLO of an engine that is looked for: ``is_ended``
           (nothing of it runs), ``left`` (numbers of processes that cannot be ended),
           ``spools`` (contents of each that is there), ``reason``
ROOM       mapping ``slots``: so many attempts at once can run there from now on; said when
           it is not what SETUP had, because processes for slots did not come or are gone
=========  =========================================================================

Ahead of a link to another machine, after the engine file:

=========  =========================================================================
ENTER      mapping ``verb``: ``engine`` or ``attach``, and what that needs
=========  =========================================================================

Between the driver and whoever asks it for something (role ``control``):

=========  =========================================================================
ASK        mapping ``verb`` and what goes with it; see ``driver/control``
ANSWER     mapping ``error`` (text, or None) and what was asked for
=========  =========================================================================

Between an engine and its runners alone:

=========  =========================================================================
SLOTS      to a runner, mapping ``slots``: the slot numbers that are its own from now
           on. One that is taken from it while busy is given up when it is free
RELEASED   from a runner: numbers of slots it has given up
=========  =========================================================================
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAGIC = b"\x93overnight-link\n"
"""Sixteen bytes before HELLO; what precedes them on an ssh stream is noise."""

LINK_VERSION = 1

SETUP, START, ASSIGN, RECALL, END, ACK, CLOSE, PING, SLOTS = range(1, 10)
HELLO, RUNNING, OPENED, ENDED, KEPT, PE_ENDED, RECALLED, NOTICE, CLOSED, PONG = range(17, 27)
RELEASED, TAKEN, CANNOT, PROOF, ROOM = range(27, 32)
ENTER = 10
ASK, ANSWER = 40, 41

ROW_END = "<qd"
"""How a task and the end of its row travel to where an engine is looked for."""

PER_ENGINE_SLOT = -1
"""Where per-engine commands run: a slot beside the others."""

BUSY_PREFETCH_S = 0.04
"""An engine may hold, beyond its free slots, what it finishes in this time."""


class Setup:
    """How an engine runs the tasks of this run. Travels in SETUP by attribute name.

    Attributes:
        run: Id of the run (DISBATCH_JOBID): last component of its prefix.
        name_tasks: DISBATCH_NAMETASKS.
        generation: Of the driver; an engine obeys the highest it has seen.
        rank: DISBATCH_ENGINE_RANK.
        slots: How many attempts at once.
        cores_per_task: DISBATCH_CORES_PER_TASK.
        cwd: Working directory of the tasks.
        variables: ``b"NAME=VALUE"`` to add to what the engine's environment has.
        always_shell: Never start a line without bash.
        late_output_s: How long a slot waits for output of a background child.
        leaves_children: Children alive after a normal end are released, not ended.
        timeout_s: Time limit of an attempt, or None.
        kill_after_s: Between the first signal and SIGKILL.
        output_dir: Where stdout and stderr of every attempt go, or None (leaks).
        spools: Files to try, in order, for reports while no driver listens.
        attach: Path of the Unix socket to listen on while no driver is connected.
        keep_reports_s: How long a spool waits to be collected.
        slot_variables: ``b"NAME=VALUE"`` for each slot, indexed by slot, or empty; those
            of slot 0 also for per-engine commands (``-E``, ``-g``).
        driver: Of one driver and no other. An engine whose link was cut takes the same
            driver back, and refuses another one of the same generation.
        divided: Names of variables that the engine divides itself, where its slots are
            processes that somebody else has given their own values (``core/ranks``).
        removes: Names of variables that tasks do not get of the engine's environment; ``*``
            at the end of one stands for any ending.
    """

    __slots__ = (
        "always_shell", "attach", "cores_per_task", "cwd", "divided", "driver", "generation",
        "keep_reports_s", "kill_after_s", "late_output_s", "leaves_children", "name_tasks",
        "output_dir", "rank", "removes", "run", "slot_variables", "slots", "spools",
        "timeout_s", "variables",
    )

    def __init__(
        self, run: str, name_tasks: str, generation: int, rank: int, slots: int,
        cores_per_task: int, cwd: str, variables: list[bytes], always_shell: bool,
        late_output_s: float, leaves_children: bool, timeout_s: float | None,
        kill_after_s: float, output_dir: str | None, spools: list[str], attach: str,
        keep_reports_s: float, slot_variables: Sequence[list[bytes]] = (), driver: str = "",
        divided: Sequence[str] = (), removes: Sequence[str] = (),
    ) -> None:
        self.run = run
        self.name_tasks = name_tasks
        self.generation = generation
        self.rank = rank
        self.slots = slots
        self.cores_per_task = cores_per_task
        self.cwd = cwd
        self.variables = variables
        self.always_shell = always_shell
        self.late_output_s = late_output_s
        self.leaves_children = leaves_children
        self.timeout_s = timeout_s
        self.kill_after_s = kill_after_s
        self.output_dir = output_dir
        self.spools = spools
        self.attach = attach
        self.keep_reports_s = keep_reports_s
        self.slot_variables = slot_variables
        self.driver = driver
        self.divided = list(divided)
        self.removes = list(removes)

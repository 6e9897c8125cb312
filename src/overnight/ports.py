"""The shapes of plugs: what the driver needs of a source, a context and an observer.

Whoever adds one writes a class of this shape and names it in ``wiring``. Nothing here
does anything; the contract suites in ``tests/contracts`` run against every plug.
"""

from __future__ import annotations

from overnight.core.recorded import Recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set
    from typing import Any, Protocol

    from overnight.core.allocate import NodeShare
    from overnight.core.effects import Entry
    from overnight.core.events import Event, KeptReports
    from overnight.model.attempt import Attempt
    from overnight.model.messages import Setup
    from overnight.model.progress import Progress
    from overnight.model.report import Report
    from overnight.model.task import Item

    class Source(Protocol):
        """Where items come from, in the order of the list."""

        @property
        def total(self) -> int | None:
            """Tasks in all, those done before included, where that is known beforehand."""

        def fileno(self) -> int | None:
            """A descriptor to wait on when ``read`` gave nothing; None: ask again in a while."""

        def read(self, count: int) -> tuple[Sequence[Item], bool]:
            """Up to about ``count`` items, without waiting, and whether the list is over.

            Raises:
                OvernightError: What follows cannot be run; what was given before stands.
            """

        def close(self) -> None:
            """Nothing more will be read."""

    class EngineHandle(Protocol):
        """A started engine: its streams and its process, as a context gives it.

        Attributes:
            read_fd: From the engine.
            write_fd: To it; may be the same.
            node: Its host as rows have it.
            setup: What it will be told; what ``meet`` learns of its host is in it then.
            is_far: Its link may be cut while it lives, and can be dialled again.
            is_survivor: An earlier driver has started it.
            opening: What is sent ahead of the first frame.
            noted: How a later driver finds it, once that has been noted.
        """

        read_fd: int
        write_fd: int
        node: str
        setup: Setup
        is_far: bool
        is_survivor: bool
        opening: Sequence[bytes]
        noted: Any

        def begin(self) -> None:
            """Start, or dial, what is at the other end; once.

            Raises:
                NoResources: That could not be done.
            """

        def meet(self, hello: Mapping[str, Any]) -> Sequence[str]:
            """Make the setup fit what the engine says of its host; before it is sent.

            Returns:
                What a person should know of that.

            Raises:
                NoResources: It cannot be used; it must be given nothing.
            """

        def redial(self, released: Set[int]) -> None:
            """Look for the engine once more, over new streams.

            Args:
                released: Tasks that were allowed to leave processes there.

            Raises:
                NoResources: That could not be tried.
            """

        def words(self) -> str:
            """Why its streams have ended, as far as that is known."""

        def is_gone(self) -> bool:
            """Whether its process, or what reaches it, has ended (it is reaped then)."""

        def end(self) -> None:
            """End its process now; what it had started is ended by ``prove_ended``.

            What is reached over a link is not ended by that: only the link is.
            """

        def reports_left(self) -> Sequence[KeptReports]:
            """What it kept, and could not say: it left, or never came up. It is gone then.

            Raises:
                ResumeRefused: It lives, and will not have this driver.
            """

        def prove_ended(self, released: Set[int]) -> Sequence[int]:
            """Bring about that nothing it started runs, but what these tasks may leave.

            Returns:
                Numbers of processes that cannot be ended: hung in the kernel. None: proved.
            """

    class JoinedHandle(EngineHandle, Protocol):
        """An engine that has joined by itself."""

        key: str
        context: str
        task_limit: int
        lends: bool

        @property
        def spool_paths(self) -> Sequence[str]:
            """Files in which it may have kept reports."""

        def has_ended(self) -> bool:
            """Whether it is certain that its process has ended. False: nobody knows."""

    class LaunchedHandle(JoinedHandle, Protocol):
        """An engine that a context has started elsewhere, and that calls."""

        launch: str

        def called(self, noted: Any, spools: Any, recorded: Recorded) -> None:
            """It has called, and is noted (``contexts.noted``, ``contexts.survivors``)."""

    class Joins(Protocol):
        """Takes in engines that call the run."""

        def admit(
            self, about: Mapping[str, Any], hello: Mapping[str, Any],
            next_rank: Callable[[], int],
        ) -> JoinedHandle:
            """Take in an engine by what it says of itself, and note it for later drivers.

            Raises:
                NoResources: It cannot be taken in.
                LinkBroken: What it says cannot be understood.
            """

        def admit_launched(
            self, handle: LaunchedHandle, about: Mapping[str, Any], hello: Mapping[str, Any]
        ) -> None:
            """Take in an engine that a context has started, and note it for later drivers.

            Raises:
                NoResources: It cannot be taken in.
                LinkBroken: What it says cannot be understood.
            """

        def set_up(self, engine: JoinedHandle, about: Mapping[str, Any]) -> None:
            """Give an engine that calls again the slots that it says it has.

            Raises:
                LinkBroken: What it says cannot be understood.
            """

    class Context(Protocol):
        """A group of engines that one host list or manager gives us."""

        label: str
        nodes: Sequence[NodeShare]

        def start(
            self, next_rank: Callable[[], int], busy: Set[str]
        ) -> Sequence[EngineHandle]:
            """Start an engine on every node that has none and may have one.

            Args:
                next_rank: Gives a number that no other engine of the run has.
                busy: Names of nodes that have an engine.

            Raises:
                NoResources: None could be started.
            """

        def setup_again(
            self, share: NodeShare, rank: int, attach: str, spools: Sequence[str]
        ) -> Setup:
            """Settings for an engine on that node which an earlier driver has started."""

    class Allocation(Protocol):
        """A context whose nodes are lent by a manager: they end, and can be given back."""

        label: str
        gives_back: bool

        @property
        def driver_node(self) -> str | None:
            """Where the driver runs, if that is one of the nodes: it is never given back."""

        def watch(self, post: Post, tell: Callable[[str, str], None]) -> None:
            """The run begins: from now on it hears when the allocation is about to end.

            Args:
                post: The door into the driver.
                tell: Takes level and text, from any thread.
            """

        def give_back(self, engine: EngineHandle) -> None:
            """Nothing is left for the node of an engine that is leaving, if it is one of ours."""

        def close(self) -> None:
            """The run is over."""

    class Observer(Protocol):
        """Who is told. It may fail and may drop; records are not observers' business."""

        def recorded(self, entries: Sequence[Entry]) -> None:
            """These have just been written."""

        def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
            """These were given to an engine."""

        def told(self, level: str, text: str) -> None:
            """Something a person should know."""

        def turn(self, now: float) -> float | None:
            """Between two turns of the loop; returns when it wants to be called again."""

        def close(self) -> None:
            """The run is over."""

    class Screen(Protocol):
        """Where a run is shown."""

        def show(self, progress: Progress) -> None:
            """Show how far the run is, if it is time for that."""

        def say(self, line: str) -> None:
            """Show a notice, of one or more lines, that stays."""

        def close(self) -> None:
            """Leave the screen as if nothing but notices had been shown; may be repeated."""

    Post = Callable[[Event], None]
    """The thread-safe door into a driver."""

    KeptPairs = Sequence[tuple[Attempt, Report]]
else:
    Source = EngineHandle = JoinedHandle = LaunchedHandle = Joins = object
    Context = Allocation = Observer = Screen = object


class Survivors:
    """What is left of earlier drivers of a run, for the driver that takes over.

    Attributes:
        engines: That live on, connected.
        reports: Events from the spools of engines that have left.
        recorded: What need not be recorded again.
        spools: Files the reports were read from: not needed once their rows are durable.
        awaited: Engines that will call by themselves, if they live; as contexts note them.
    """

    def __init__(
        self, engines: Sequence[EngineHandle] = (), reports: Sequence[KeptReports] = (),
        recorded: Recorded | None = None, spools: Sequence[str] = (),
        awaited: Sequence[Any] = (),  # contexts.noted.NotedEngine
    ) -> None:
        self.engines = engines
        self.reports = reports
        self.recorded = recorded or Recorded()
        self.spools = spools
        self.awaited = awaited

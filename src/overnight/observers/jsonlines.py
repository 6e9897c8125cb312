"""The run as JSON lines on standard output (``--json``): one object an event."""

from __future__ import annotations

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded, TasksSkipped
from overnight.formats.tasklog import attempt_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from overnight.core.effects import Entry
    from overnight.model.attempt import Attempt


class JsonObserver:
    """Writes an object per event; each has ``event``: its name."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def say(self, event: str, **facts: object) -> None:
        """Write one event."""
        from json import dumps

        self._write(dumps({"event": event, **facts}, separators=(",", ":")) + "\n")

    def finish(self, facts: Mapping[str, object]) -> None:
        """Write the last object: the summary."""
        self.say("finished", **facts)

    def recorded(self, entries: Sequence[Entry]) -> None:
        """Every ending, with what ``_tasks.jsonl`` says of it."""
        for entry in entries:
            if type(entry) is TaskEnded:
                line = attempt_line(
                    entry.task, entry.report, entry.node, entry.rank, entry.settles
                ).decode()
                self._write('{"event":"attempt",' + line[1:])
            elif type(entry) is BarrierMet:
                self.say("barrier", task=entry.barrier.id, line=entry.barrier.line)
            elif type(entry) is CommandEnded:
                name = "START" if entry.command.at_start else "STOP"
                self.say("per-engine", command=name, number=entry.command.number,
                         code=entry.report.outcome.code, words=entry.report.outcome.words())
            elif isinstance(entry, TasksSkipped):
                done = entry.done
                self.say("skipped", task=done.id, count=done.count, code=done.code)

    def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
        """What was given to an engine."""
        for attempt in attempts:
            self.say("assigned", task=attempt.task.id, attempt=attempt.number, engine=engine)

    def told(self, level: str, text: str) -> None:
        """Every notice."""
        self.say("notice", level=level, text=text)

    def turn(self, now: float) -> None:
        """It never wants to be called."""

    def close(self) -> None:
        """The last object is written by ``finish``."""

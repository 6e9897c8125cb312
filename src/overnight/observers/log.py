"""Everything a person is told, and what was given to whom, in the driver's log."""

from __future__ import annotations

from overnight.core.effects import BarrierMet, CommandEnded, TaskEnded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.effects import Entry
    from overnight.model.attempt import Attempt
    from overnight.model.outcome import Outcome
    from overnight.observers.runlog import RunLog

_LEVELS = {"info": "INFO", "warning": "WARNING", "error": "ERROR", "debug": "DEBUG"}


class LogObserver:
    """Writes the driver's log."""

    def __init__(self, log: RunLog) -> None:
        self._log = log
        self._is_verbose = log.wants("DEBUG")

    def recorded(self, entries: Sequence[Entry]) -> None:
        """Failures and barriers, and with DEBUG every ending."""
        for entry in entries:
            if type(entry) is TaskEnded:
                outcome = entry.report.outcome
                if outcome.code or self._is_verbose:
                    self._write_ending(
                        f"task {entry.task.id} (line {entry.task.line}), attempt"
                        f" {entry.report.attempt}", outcome,
                    )
            elif type(entry) is BarrierMet:
                self._log.write("INFO", f"barrier of line {entry.barrier.line} is met")
            elif type(entry) is CommandEnded:
                command = entry.command
                name = "START" if command.at_start else "STOP"
                self._write_ending(
                    f"PERENGINE {name} of line {command.line} on {entry.node}",
                    entry.report.outcome,
                )

    def _write_ending(self, what: str, outcome: Outcome) -> None:
        self._log.write("INFO" if outcome.code else "DEBUG", f"{what}: {outcome.words()}")

    def assigned(self, engine: int, attempts: Sequence[Attempt]) -> None:
        """With DEBUG, what was given to an engine."""
        if self._is_verbose:
            ids = " ".join(str(attempt.task.id) for attempt in attempts)
            self._log.write("DEBUG", f"engine {engine} gets tasks {ids}")

    def told(self, level: str, text: str) -> None:
        """Every notice."""
        for line in text.splitlines():
            self._log.write(_LEVELS.get(level, "INFO"), line)

    def turn(self, now: float) -> None:
        """It never wants to be called."""

    def close(self) -> None:
        """Close the log."""
        self._log.close()

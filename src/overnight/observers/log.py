"""Everything a person is told, and what was given to whom, in the driver's log."""

from __future__ import annotations

from overnight.core.effects import BarrierMet, TaskEnded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from overnight.core.effects import Entry
    from overnight.driver.log import RunLog
    from overnight.model.attempt import Attempt

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
                if self._is_verbose or entry.report.outcome.code != 0:
                    self._log.write(
                        "INFO" if entry.report.outcome.code else "DEBUG",
                        f"task {entry.task.id} (line {entry.task.line}), attempt"
                        f" {entry.report.attempt}: {entry.report.outcome.words()}",
                    )
            elif type(entry) is BarrierMet:
                self._log.write("INFO", f"barrier of line {entry.barrier.line} is met")

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

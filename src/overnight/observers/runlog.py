"""The driver's log: one line an event, for whoever looks for a fault.

Not the logging package: importing it costs a run more than starting seven tasks.
Environments and secrets are never written to it.
"""

from __future__ import annotations

import os
import time

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class RunLog:
    """Appends lines to a file. A log that cannot be written never stops a run."""

    def __init__(self, path: str, level: str = "INFO") -> None:
        """Open the log.

        Raises:
            OSError: The file cannot be made; nothing else has happened.
        """
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._threshold = LEVELS.index(level)

    def wants(self, level: str) -> bool:
        """Whether lines of this level are kept."""
        return LEVELS.index(level) >= self._threshold

    def write(self, level: str, text: str) -> None:
        """Add a line; control characters are made visible."""
        if not self.wants(level):
            return
        now = time.time()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        clean = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
        line = f"{stamp},{int(now % 1 * 1000):03d} {level:<8} {clean}\n"
        try:
            os.write(self._fd, line.encode("utf-8", "backslashreplace"))
        except OSError:
            return  # a full disk is told by the record, not by its log

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

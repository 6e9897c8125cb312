"""The warnings of a run that goes on elsewhere: its driver's log has them."""

from __future__ import annotations

import os
import time

from overnight.core.summary.warned import Warned
from overnight.model.run import RunFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from overnight.driver.describe import Description

_LEVELS = ("WARNING", "ERROR")
_SECONDS = len("2025-01-01 00:00:00")
_STAMP = len("2025-01-01 00:00:00,000 ")


class WarningsInLog:
    """Reads a driver's log as it grows; a log that cannot be read tells nothing.

    Attributes:
        path: Of the log.
        warned: What was found so far, of the last driver alone.
    """

    def __init__(self, files: RunFiles, description: Description | None) -> None:
        self.path = files.driver_log
        self.warned = Warned()
        self._since = ""
        self._at = 0
        self._unfinished = b""
        if description is not None:
            logfile = description.options.logfile
            self.path = os.path.join(description.cwd, logfile) if logfile else files.driver_log
            began = time.localtime(description.started_at)
            self._since = time.strftime("%Y-%m-%d %H:%M:%S", began)

    def read_on(self) -> list[str]:
        """Warnings that have been added, as far as they are kept."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError:
            return []
        self._at += len(data)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        found = [self._warning(line.decode("utf-8", "replace")) for line in lines]
        return [text for text in found if text and self.warned.add(text)]

    def _warning(self, line: str) -> str:
        level, _, text = line[_STAMP:].partition(" ")
        is_ours = line[:_SECONDS] >= self._since and level in _LEVELS
        return text.lstrip(" ") if is_ours else ""

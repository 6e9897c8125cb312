"""What a client of a driver may be."""

from __future__ import annotations

ENGINE = "engine"  # it runs tasks
RUNNER = "runner"  # one slot of an engine
LAUNCHER = "launcher"  # it starts engines and ends them
MONITOR = "monitor"  # it watches
CONTROL = "control"  # it asks the driver for something and waits for the answer

ROLES = (ENGINE, RUNNER, LAUNCHER, MONITOR, CONTROL)

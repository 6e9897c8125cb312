"""Lets the tests import the benchmark's modules as its scripts do: from its own folder."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

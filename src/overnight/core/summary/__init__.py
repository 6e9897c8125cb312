"""The morning after: how a run went, held in bounded memory and said in plain text.

``Summary`` is told of each task once, when its fate is settled, and forgets it: counts and
sums stay, the few slowest, the few largest, and the failures by cause. What tasks wrote is
foreign text: it is clipped, and characters that a terminal would obey are written out.
"""

from __future__ import annotations

from overnight.core.summary.rerun import rerun_command, rerun_from_list
from overnight.core.summary.tally import Summary
from overnight.core.summary.text import (
    ends_with_counts,
    headline,
    left_words,
    summary_facts,
    summary_text,
)

__all__ = [
    "Summary", "ends_with_counts", "headline", "left_words", "rerun_command", "rerun_from_list",
    "summary_facts", "summary_text",
]

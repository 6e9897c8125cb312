"""The utility script of a run: the ticket by which others join or watch it."""

from __future__ import annotations


def script_text(prefix: str) -> str:
    """The script of the run with this prefix.

    Adding contexts, monitoring and joining engines are not there yet: the script says so
    instead of half doing it.
    """
    quoted = "'" + prefix.replace("'", "'\\''") + "'"
    return f"""#!/bin/bash
# Utility script of an overnight run.
run={quoted}
if [ ! -e "$run"_lock ]; then
    echo "The run has ended: $run" >&2
    exit 1
fi
echo "Adding contexts to a run, and watching it, are not there yet: $run" >&2
exit 1
"""

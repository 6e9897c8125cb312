"""The ten lines a user would write by hand: a thread per slot, subprocess.run per line.

    concurrent_list.py SLOTS LIST [normal|full]

Output is captured through two pipes and kept in memory. With a third argument each result
is also committed to an SQLite database of its own transaction, in WAL mode with that
``synchronous`` setting: the obvious way to a durable record.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

Result = subprocess.CompletedProcess[bytes]


def run_line(line: str) -> Result:
    """Run one line in a bash of its own, output captured."""
    return subprocess.run(
        ["/bin/bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )


def keep_nothing(result: Result) -> None:
    """The result stays in memory alone."""


def committer(database: sqlite3.Connection, synchronous: str) -> Callable[[Result], None]:
    """Give what commits one result in a transaction of its own."""
    database.execute("pragma journal_mode=wal")
    database.execute(f"pragma synchronous={synchronous}")
    database.execute("create table row (command text, code int, out blob, err blob)")

    def commit(result: Result) -> None:
        values = (result.args[2], result.returncode, result.stdout[:80], result.stderr[:80])
        database.execute("insert into row values (?, ?, ?, ?)", values)
        database.commit()

    return commit


def main(slots: int, list_file: str, synchronous: str = "") -> int:
    """Run the list; 1 when a line failed."""
    with contextlib.ExitStack() as stack:
        keep: Callable[[Result], None] = keep_nothing
        if synchronous:
            database = stack.enter_context(contextlib.closing(sqlite3.connect("rows.db")))
            keep = committer(database, synchronous)
        pool = stack.enter_context(ThreadPoolExecutor(slots))
        lines = stack.enter_context(open(list_file))
        failed = 0
        for future in as_completed([pool.submit(run_line, line.rstrip("\n")) for line in lines]):
            keep(future.result())
            failed += future.result().returncode != 0
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:]))

"""A recording process is killed with SIGKILL: what stands in its file, and how another goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import overnight
from overnight.formats import statusfile
from overnight.model.run import RunFiles
from tests.conformance.harness_processes import wait_until

ROOT = Path(__file__).parents[2]
KILLS = 8

RECORDING = """
import sys
from pathlib import Path
from tests.driver.record_kit import RecordBench, ended

bench = RecordBench(Path(sys.argv[1]), goes_on=True)
id = int(sys.argv[2])
while True:
    for _ in range(50):
        bench.write(ended(id, command=b"x" * 700))
        id += 1
    bench.turn(after_s=1.0)
    if not bench.results.empty():
        for name, *fields in bench.take_flush():
            print(int(sys.argv[2]) + fields[0], flush=True)  # so many rows are durable
"""


def record_until_killed(folder: Path, first_id: int, kill_at: int) -> int:
    """Record tasks from an id on until the file has a size; how many rows were durable."""
    status = Path(RunFiles(f"{folder}/run").status)
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDING, str(folder), str(first_id)], text=True,
        stdout=subprocess.PIPE,
        env={**os.environ,
             "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(overnight.__file__).parents[1])])},
    )
    assert wait_until(lambda: status.exists() and status.stat().st_size > kill_at, 60)
    process.kill()
    said = process.communicate()[0].split()
    return int(said[-1]) if said else 0


def test_rows_of_a_killed_driver_are_whole_and_in_order_and_none_that_was_durable_is_missing(
    tmp_path,
):
    status = Path(RunFiles(f"{tmp_path}/run").status)
    next_id = 0
    for kill in range(1, KILLS + 1):
        durable = record_until_killed(tmp_path, next_id, kill_at=kill * 200_000 + kill * 37)
        whole = status.read_bytes().rpartition(b"\n")[0]  # a last line without its end is torn
        ids = [row.id for row in statusfile.read_rows([whole])]
        assert ids == list(range(len(ids)))
        assert len(ids) >= durable
        next_id = len(ids)
    lines = status.read_bytes().split(b"\n")
    torn = [line for line in lines[:-1] if statusfile.parse_row(line) is None]
    assert len(torn) <= KILLS

"""Which conformance cases wait for what is not built yet, and for which part of the program.

They are reported as such by every test run, and played with ``--with-later``. Whoever builds a
part takes its lines out here.
"""

MANY_MACHINES = "part B: many machines, and a pool that grows and shrinks"
PROGRAMS_DRIVE = "part C: task servers, DisBatcher, the key-value face"
QUEUE = "part D: the queue, notebooks, GPUs"
WATCHING = "part E: watching and being told"

CASES = {
    "kvs-class": PROGRAMS_DRIVE,
    "kvs-command": PROGRAMS_DRIVE,
    "kvs-info": PROGRAMS_DRIVE,
    "kvs-semantics": PROGRAMS_DRIVE,
}

MENDS = {
    "mend-kvs-fail": PROGRAMS_DRIVE,
    "mend-kvs-nodone": PROGRAMS_DRIVE,
    "mend-kvs-taskserver": PROGRAMS_DRIVE,
    "mend-kvs-taskserver2": PROGRAMS_DRIVE,
}

BUG_AREAS = {
    "embed": PROGRAMS_DRIVE,
    "gpu-guard": QUEUE,
    "nvidia-smi": QUEUE,
    "queue-control": QUEUE,
    "queue-run": QUEUE,
    "web": WATCHING,
}

"""What the user asked for, as values: the command line and the Python API both make one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class RunOptions:
    """Options of a run. Names are those of the command line (docs/reference/options.md).

    Every attribute has its default here; the constructor takes those that differ.
    """

    # what to run
    task_file: str | None = None  # path, or "-" for standard input
    directives: str = "refuse"  # or "lenient"
    # records
    prefix: str = "."
    resume_from: tuple[str, ...] = ()
    retry: bool = False
    force_resume: bool = False
    by_text: bool = False
    resume_check_limit: int = 10_000_000
    status_header: bool = False
    logfile: str | None = None
    loglevel: str = "INFO"
    # where
    ssh_node: tuple[str, ...] = ()
    jobs: int | None = None
    cpus_per_task: float | None = None
    tasks_per_node: int | None = None
    fill: bool = False
    context_task_limit: int = 0
    gpu: bool = False
    env_resource: tuple[str, ...] = ()
    label: str | None = None
    startup_only: bool = False
    listen: bool = False
    use_address: str | None = None
    remote_python: str | None = None
    no_retire: bool = False
    retire_cmd: str | None = None  # None: the manager's own way; "": none
    grace: float = 0.0
    keep_slurm_env: bool = False
    # how tasks are run
    always_shell: bool = False
    late_output: float = 5.0
    leave_children: bool = True
    timeout: float | None = None
    kill_after: float = 2.0
    output: str | None = None
    # failing and trying again
    exit_code: bool = False
    fail_fast: bool = False
    max_failures: int | None = None
    retries: int = 0
    crash_limit: int = 3
    keep_reports: float = 7 * 86400.0
    # when tasks start
    delay: float = 0.0
    load: float | None = None
    memfree: int | None = None
    shuffle: int | None = None
    # what is shown
    print: bool = False
    keep_order: bool = False
    tag: bool = False
    quiet: bool = False
    json: bool = False
    # the two faces
    is_compatible: bool = False  # disBatch, not ``overnight run``

    def __init__(self, **chosen: Any) -> None:
        for name, value in chosen.items():
            if name not in RunOptions.__annotations__:
                raise TypeError(f"a run has no option {name!r}")
            setattr(self, name, value)

    def chosen(self) -> dict[str, Any]:
        """What differs from the defaults, by name."""
        return dict(vars(self))

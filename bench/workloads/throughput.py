"""W1, W2, W3 and the shell-free lane: how fast short tasks go through, and at what cost.

Whole processes are measured, start and end included, each against the same list in the
same round.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness import figures
from harness.kit import Kit, Section, race_section
from harness.load import Load
from harness.rounds import Contest
from harness.targets import Target, at_least, at_most

YARDSTICKS = ("cloop", "xargs", "cf", "parallel", "hq")
QUICK_YARDSTICKS = ("cloop", "xargs", "cf")
"""Those that run 20,000 tasks in a minute; the others are measured at 2,000."""


def speed_targets(
    workload: str, contest: Contest, promises: dict[str, float], ours: str = "ours"
) -> list[Target]:
    """Speed of ours over each yardstick, against what is promised."""
    return [
        at_least(
            workload, f"speed / {name}", limit, figures.ratio(contest, ours, name, figures.rate)
        )
        for name, limit in promises.items()
    ]


def plain(kit: Kit) -> Iterator[Section]:
    """W1: `true`. A builtin, so every contestant starts a bash for it."""
    for slots in (2, 8):
        yield few_plain(kit, slots)


def plain_long(kit: Kit) -> Iterator[Section]:
    """W1 with ten times as many tasks."""
    for slots in (2, 8):
        yield many_plain(kit, slots)


def few_plain(kit: Kit, slots: int) -> Section:
    """2,000 tasks, against everybody; ours also with the shell-free lane off."""
    load = Load("true", kit.sized(2_000, 40), slots)
    contest = kit.race(load, kit.chosen("ours", "ours-shell", *YARDSTICKS))
    promises = {"cloop": 0.90, "xargs": 1.0, "cf": 1.2, "parallel": 3.5, "hq": 3.0}
    cpu = figures.ratio(contest, "ours", "cloop", figures.cpu_us)
    name = f"W1 N={load.count} x{slots}"
    targets = [at_most(name, "CPU per task / cloop", 1.15, cpu)]
    return race_section(
        f"W1  {load}", contest, targets + speed_targets(name, contest, promises)
    )


def many_plain(kit: Kit, slots: int) -> Section:
    """20,000 tasks: what is left when starting up no longer counts."""
    load = Load("true", kit.sized(20_000, 80), slots)
    contest = kit.race(load, kit.chosen("ours", *QUICK_YARDSTICKS))
    cpu = figures.ratio(contest, "ours", "cloop", figures.cpu_us)
    name = f"W1 N={load.count} x{slots}"
    targets = [at_most(name, "CPU per task / cloop", 1.10, cpu)]
    promises = {"cloop": 0.90, "xargs": 1.0, "cf": 1.2}
    return race_section(
        f"W1  {load}", contest, targets + speed_targets(name, contest, promises)
    )


def usual_line(kit: Kit) -> Iterator[Section]:
    """W2: the line most lists are made of, with a subshell, a cd and a log."""
    load = Load("(cd /tmp && /bin/true) &> log", kit.sized(2_000, 40), 2)
    contest = kit.race(load, kit.chosen("ours", *YARDSTICKS))
    promises = {"cloop": 0.93, "xargs": 1.0}
    yield race_section(f"W2  {load}", contest, speed_targets("W2", contest, promises))


def sleeps(kit: Kit) -> Iterator[Section]:
    """W3: tasks that wait, so that slots, not processors, are what there is too few of.

    These lines need no shell, so ours starts them without one; each is judged with that
    lane off as well.
    """
    yield short_sleeps(kit)
    yield long_sleeps(kit)
    yield sleeps_of_disbatch(kit)


def short_sleeps(kit: Kit) -> Section:
    """10 ms each: a slot left idle for a millisecond shows."""
    load = Load("sleep 0.01", kit.sized(2_000, 40), 20)
    contest = kit.race(load, kit.chosen("ours", "ours-shell", *YARDSTICKS))
    promises = {"cloop": 0.95}
    targets = speed_targets("W3", contest, promises)
    targets += speed_targets("W3 lane off", contest, promises, ours="ours-shell")
    return race_section(f"W3  {load}", contest, targets)


def long_sleeps(kit: Kit) -> Section:
    """0.2 s each: 20 waves that should take 4 s and no more."""
    load = Load("sleep 0.2", kit.sized(400, 40), 20)
    contest = kit.race(load, kit.chosen("ours", "ours-shell", "cloop", "xargs", "parallel", "hq"))
    ideal_s = 0.2 * load.count / load.slots
    targets = makespan_targets("W3 0.2 s", contest, ideal_s, "ours")
    targets += makespan_targets("W3 0.2 s lane off", contest, ideal_s, "ours-shell")
    return race_section(f"W3  {load}; ideal {ideal_s:g} s", contest, targets)


def makespan_targets(
    workload: str, contest: Contest, ideal_s: float, ours: str
) -> list[Target]:
    """From the first start to the last end, against the ideal and against xargs."""
    took_s = figures.middle(contest, ours, lambda sample: sample.wall_s)
    slower = figures.ratio(contest, ours, "xargs", lambda sample: sample.wall_s)
    return [
        at_most(workload, "makespan / ideal", 1.10, took_s and took_s / ideal_s),
        at_most(workload, "makespan / xargs", 1.03, slower),
    ]


def sleeps_of_disbatch(kit: Kit) -> Section:
    """Against disBatch 3.0 with few enough tasks that it ends in a quarter of a minute.

    Same list, same slots, same round: nothing is extrapolated. Both pay their start-up.
    """
    load = Load("sleep 0.01", kit.sized(200, 20), 20)
    contest = kit.race(load, kit.chosen("ours", "ours-shell", "cloop", "disbatch3"))
    promises = {"disbatch3": 30.0}
    targets = speed_targets("W3 N=200", contest, promises)
    targets += speed_targets("W3 N=200 lane off", contest, promises, ours="ours-shell")
    return race_section(f"W3  {load}, with disBatch 3.0", contest, targets)


def shell_free(kit: Kit) -> Iterator[Section]:
    """The lane for lines without shell syntax, against `bash -c` of the same line."""
    load = Load("/bin/true", kit.sized(2_000, 40), 2)
    contest = kit.race(load, kit.chosen("ours", "ours-shell", "cloop", "xargs"))
    targets = speed_targets("lane", contest, {"cloop": 1.8})
    yield race_section(f"lane  {load}", contest, targets)

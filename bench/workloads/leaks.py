"""W8: output that nobody redirected, little of it and much of it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from harness import figures, process, sampling
from harness.kit import Kit, Section, contest_data, nothing_more, objection
from harness.load import Load
from harness.product import Product
from harness.rounds import Contest, Sample, play
from harness.sampling import Watch
from harness.targets import Target, at_least, at_most

MEGABYTE = 1_000_000


def leaked_output(kit: Kit) -> Iterator[Section]:
    """W8."""
    yield few_bytes(kit)
    yield many_bytes(kit)
    if kit.ours and "ours" in kit.tools:
        yield draining(kit, kit.ours)


def few_bytes(kit: Kit) -> Section:
    """A line to each stream, beside tasks that say nothing.

    The C loop runs both lines as well: bash's own cost of saying something is its
    difference, and no contestant can save that.
    """
    loads = {
        line: Load(line, kit.sized(2_000, 40), 2) for line in ("true", "echo x; echo y >&2")
    }
    players = {
        f"{name} {'silent' if load.line == 'true' else 'leaks'}": player
        for load in loads.values()
        for name, player in players_of(kit, load).items()
    }
    contest = play(players, kit.rounds, kit.say)
    table = figures.race_table(contest, "ours leaks", "ours silent")
    title = f"W8  {loads['echo x; echo y >&2']}, beside `true`"
    lines = [*table, *figures.conditions(contest)]
    return Section(title, lines, contest_data(contest), few_bytes_targets(contest))


def players_of(kit: Kit, load: Load) -> Mapping[str, Callable[[], Sample]]:
    """Ours and the yardsticks on one of two lines; each line has a list of its own."""
    tasks = load.write_list(kit.scratch / f"Tasks-{len(load.line)}")
    return {
        name: functools.partial(kit.sample, tool, load, tasks, nothing_more)
        for name, tool in kit.chosen("ours", "cloop", "cf").items()
    }


def few_bytes_targets(contest: Contest) -> list[Target]:
    """CPU of leaking over CPU of silence, whole."""
    dearer = figures.ratio(contest, "ours leaks", "ours silent", figures.cpu_us)
    return [at_most("W8", "CPU, 2 lines leaked / none", 1.05, dearer)]


def flood(kit: Kit) -> Load:
    """Tasks that pour out zeros."""
    size = kit.sized(20, 1) * MEGABYTE
    return Load(f"head -c {size} /dev/zero", kit.sized(50, 4), 2)


def leaked_mb(load: Load) -> float:
    """What a run of this flood leaks in all."""
    return int(load.line.split()[2]) * load.count / MEGABYTE


def many_bytes(kit: Kit) -> Section:
    """A gigabyte through the tool: megabytes a second, CPU of all a megabyte."""
    load = flood(kit)
    contest = kit.race(load, kit.chosen("ours", "cf", "parallel"))
    mb = leaked_mb(load)

    def mb_s(sample: Sample) -> float:
        return mb / sample.wall_s

    lines = [
        (name, figures.spread(figures.values(contest, name, mb_s)),
         f"{(figures.middle(contest, name, lambda done: done.cpu_s) or 0) * 1000 / mb:.2f}")
        for name in contest.names
    ]
    heads = ("tool", "MB/s med (min, max)", "CPU ms/MB, tasks' included")
    through = figures.middle(contest, "ours", mb_s)
    return Section(
        f"W8  {load}", [*figures.table(heads, lines), *figures.conditions(contest)],
        contest_data(contest), [at_least("W8", "leaked output", 1000, through, " MB/s")],
    )


READERS = ("engine", "runners")
"""The processes that read what tasks leak."""


def draining(kit: Kit, ours: Product) -> Section:
    """What of that CPU is the engine's, and whether it stays as small as it was.

    The same run with tasks that leak nothing is taken off: what is left is the reading.
    """
    load = flood(kit)
    loud = watched(kit, ours, load)
    silent = watched(kit, ours, replace(load, line="head -c 0 /dev/zero"))
    title = f"W8  draining: {load}"
    if loud is None or silent is None:
        return Section(title, ["not measured: see above"], {})
    ms_per_mb = (loud.cpu(*READERS).total_s - silent.cpu(*READERS).total_s) * 1000
    ms_per_mb /= leaked_mb(load)
    grown_mb = (loud.largest_kib(*READERS) - silent.largest_kib(*READERS)) * 1024 / MEGABYTE
    lines = [
        f"engine and runners: {ms_per_mb:.2f} ms of CPU per MB",
        f"the largest of them: {grown_mb:+.1f} MB against silent tasks",
    ]
    targets = [
        at_most("W8", "engine CPU per leaked MB", 0.6, ms_per_mb, " ms"),
        at_most("W8", "engine growth while draining", 2, grown_mb, " MB"),
    ]
    return Section(title, lines, {"ms_per_mb": ms_per_mb, "growth_mb": grown_mb}, targets)


def watched(kit: Kit, ours: Product, load: Load) -> Watch | None:
    """What was seen of the processes of a run; None, and said, when it went wrong."""
    with kit.folder() as folder:
        running = process.Running(ours.run(load.slots, kit.written(load)), folder, kit.home)
        seen = sampling.watch(running, load.limit_s, interval_s=0.02)
        wrong = objection(running.finish(load.limit_s), running)
    if wrong:
        kit.say(f"draining, {load}: {wrong}")
        return None
    return seen

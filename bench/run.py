"""Runs ours and the peers in one go and prints what came out.

    python bench/run.py                       everything, an hour on a small machine
    python bench/run.py --workload W1,W4      some workloads
    python bench/run.py --only ours,cloop     some contestants
    python bench/run.py --quick               small numbers, to see that it works
    python bench/run.py --list                what there is

The figures stand in bench/results/ too, every sample of every round, as JSON. The exit
status says whether the benchmark could be run, not whether targets were met; with
``--strict`` a missed target ends it with 1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import peers
from harness import machine, process, tree
from harness.kit import Kit, Section
from harness.product import Product, dis_batch
from harness.targets import Target, target_table
from harness.tools import Tool, our_tool, peer_tool
from workloads import WORKLOADS

BENCH = Path(__file__).resolve().parent
OURS = ("ours", "ours-shell")
TOOLS = (*OURS, *peers.INSTALLERS)


def names_of(known: Sequence[str], text: str) -> list[str]:
    """The names in a comma list, each of which must be known."""
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"not known: {', '.join(unknown)}; known: {', '.join(known)}")
    return names


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Measure overnight and its peers.")
    parser.add_argument("--workload", default=",".join(WORKLOADS), metavar="NAME,...")
    parser.add_argument("--only", default=",".join(TOOLS), metavar="TOOL,...")
    parser.add_argument("--rounds", type=int, default=5, help="that count, beside the first (5)")
    parser.add_argument("--quick", action="store_true", help="small numbers; figures mean nothing")
    parser.add_argument("--big", action="store_true", help="W5 with ten million lines too")
    parser.add_argument("--strict", action="store_true", help="status 1 when a target is missed")
    parser.add_argument(
        "--results", type=Path, metavar="DIR", default=BENCH / "results", help="of the JSON"
    )
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where runs keep their files")
    parser.add_argument("--list", action="store_true", help="name workloads and tools, and end")
    return parser.parse_args()


def our_tools() -> tuple[Product | None, dict[str, Tool], dict[str, str]]:
    """Ours, the contestants made of it, and why they are missing if they are."""
    path = dis_batch(BENCH.parent)
    version = machine.first_line_of(str(path), "--version") if path.exists() else ""
    if not version:
        return None, {}, dict.fromkeys(OURS, f"{path} does not run")
    ours = Product(path)
    tools = [
        our_tool(ours, "ours", version), our_tool(ours, "ours-shell", version, "--always-shell")
    ]
    return ours, {tool.name: tool for tool in tools}, {}


def contestants(chosen: Sequence[str]) -> tuple[Product | None, dict[str, Tool], dict[str, str]]:
    """Ours, all chosen contestants that are there, and why each of the others is not."""
    ours, tools, missing = our_tools()
    there, not_there = peers.install([name for name in chosen if name not in OURS])
    tools |= {name: peer_tool(name, peer.path, peer.version) for name, peer in there.items()}
    missing |= not_there
    return (
        ours,
        {name: tool for name, tool in tools.items() if name in chosen},
        {name: reason for name, reason in missing.items() if name in chosen},
    )


def say(line: str = "") -> None:
    """Print at once: a run is watched."""
    print(line, flush=True)


def say_head(about: dict[str, str], tools: dict[str, Tool], missing: dict[str, str]) -> None:
    """The machine and the contestants."""
    for name, value in about.items():
        say(f"{name:18} {value}")
    say()
    for tool in tools.values():
        say(f"{tool.name:18} {tool.version}; keeps: {tool.keeps}")
    for name, reason in missing.items():
        say(f"{name:18} MISSING, nothing is claimed about it: {reason}")


def say_section(section: Section) -> None:
    """One workload's table."""
    say(f"\n{section.title}\n")
    for line in section.lines:
        say(f"  {line}")


def play(kit: Kit, names: Sequence[str]) -> list[Section]:
    """Run the workloads, printing each section as it is done."""
    sections = []
    try:
        for name in names:
            for section in WORKLOADS[name](kit):
                say_section(section)
                sections.append(section)
    finally:
        # Contestants have sessions of their own: an interrupt of ours does not reach them.
        tree.kill_all(tree.descendants(os.getpid()))
    return sections


def keep(folder: Path, about: dict[str, str], kit: Kit, sections: Sequence[Section]) -> Path:
    """Write everything measured to a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / time.strftime("%Y-%m-%dT%H%M%S.json")
    whole: dict[str, Any] = {
        "machine": about,
        "is_quick": kit.is_quick,
        "versions": {tool.name: tool.version for tool in kit.tools.values()},
        "sections": {section.title: section.data for section in sections},
        "targets": [
            {"workload": target.workload, "what": target.promise, "limit": target.limit,
             "measured": target.measured, "met": target.verdict}
            for section in sections for target in section.targets
        ],
    }
    path.write_text(json.dumps(whole, indent=1))
    return path


def say_targets(targets: Sequence[Target], is_quick: bool) -> None:
    """The table at the end."""
    say("\nTargets" + (" (a quick run: these figures mean nothing)" if is_quick else "") + "\n")
    for line in target_table(targets, is_judged=not is_quick):
        say(f"  {line}")


def main() -> int:
    """Install, measure, print, keep."""
    options = arguments()
    workloads, chosen = names_of(list(WORKLOADS), options.workload), names_of(TOOLS, options.only)
    if options.list:
        say("workloads: " + " ".join(WORKLOADS) + "\ntools: " + " ".join(TOOLS))
        return 0
    process.adopt_orphans()
    # A termination unwinds like an interrupt, so contestants end and their files go.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    ours, tools, missing = contestants(chosen)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.scratch) as scratch:
        about = machine.describe(Path(scratch))
        say_head(about, tools, missing)
        kit = Kit(
            tools, ours, Path(scratch), 1 if options.quick else options.rounds, options.quick,
            options.big, say,
        )
        sections = play(kit, workloads)
    about["load average at the end"] = " ".join(f"{load:.2f}" for load in os.getloadavg())
    targets = [target for section in sections for target in section.targets]
    say_targets(targets, options.quick)
    say(f"\nload average at the end {about['load average at the end']}")
    say(f"every sample: {os.path.relpath(keep(options.results, about, kit, sections))}")
    missed = any(target.verdict == "NO" for target in targets)
    return 1 if missed and options.strict and not options.quick else 0


if __name__ == "__main__":
    sys.exit(main())

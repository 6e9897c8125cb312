"""Contestants take turns, so that what disturbs the machine disturbs them all alike.

The rules:

* Round by round every contestant runs once; who begins moves on by one each round.
* The first round is dropped: it fills caches.
* A round in which the host stole more than a tenth of the machine is played again, and so
  is one in which a result was wrong. Both are counted and printed.
* Replays are bounded. A contestant whose result was wrong twice is withdrawn, by name and
  with the reason; the rest goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from harness.machine import CpuTime, cpu_time

STEAL_LIMIT = 0.10
WRONG_LIMIT = 2


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run of one contestant gave.

    Attributes:
        count: Tasks it ran.
        wall_s: From start to exit.
        cpu_s: User and system time of all that was waited for.
        complaint: Why the result is wrong, '' when it is right.
        extra: Further figures of the workload, by name.
    """

    count: int
    wall_s: float
    cpu_s: float
    complaint: str = ""
    extra: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Tasks a second, start and end of the tool included."""
        return self.count / self.wall_s

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a task."""
        return self.cpu_s / self.count * 1e6


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of everybody."""

    samples: Mapping[str, Sample]
    spent: CpuTime  # by the whole machine, while it lasted

    @property
    def others(self) -> float:
        """Share of the machine that was used by none of the contestants, from 0 to 1."""
        counted_s = sum(sample.cpu_s for sample in self.samples.values())
        return max(0.0, (self.spent.busy_s - counted_s) / self.spent.total_s)


@dataclass(slots=True)
class Contest:
    """The rounds that count, and what was set aside."""

    rounds: list[Round] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)  # why, one line a round
    withdrawn: dict[str, str] = field(default_factory=dict)  # reason by name

    @property
    def names(self) -> list[str]:
        """Who is in every round that counts."""
        return list(self.rounds[-1].samples) if self.rounds else []


def turns(names: list[str], number: int) -> list[str]:
    """The order of round ``number``: the same circle, begun one further each time.

    >>> turns(["a", "b", "c"], 1)
    ['b', 'c', 'a']
    """
    begin = number % len(names) if names else 0
    return names[begin:] + names[:begin]


def play_round(
    players: Mapping[str, Callable[[], Sample]], number: int, clock: Callable[[], CpuTime]
) -> Round:
    """Let everybody run once."""
    before = clock()
    samples = {name: players[name]() for name in turns(list(players), number)}
    # The given order again, so that tables do not turn with the rounds.
    return Round({name: samples[name] for name in players}, clock() - before)


def objections(played: Round) -> dict[str, str]:
    """Why the round cannot count: wrong results by contestant, '' for the machine itself."""
    found = {name: done.complaint for name, done in played.samples.items() if done.complaint}
    if played.spent.steal > STEAL_LIMIT:
        found[""] = f"{played.spent.steal:.0%} of the machine was stolen"
    return found


def play(
    players: Mapping[str, Callable[[], Sample]], rounds: int, say: Callable[[str], None],
    clock: Callable[[], CpuTime] = cpu_time,
) -> Contest:
    """Play until ``rounds`` rounds count, the first one dropped before.

    Args:
        players: What runs a contestant once, by name, in the order of the tables.
        rounds: Rounds to count; as many again are spent on replays at most.
        say: Told of each round that does not count.
        clock: Says where the machine's time has gone so far.
    """
    contest, left = Contest(), dict(players)
    wrong = dict.fromkeys(players, 0)
    for number in range(1 + 2 * rounds):
        if not left or len(contest.rounds) == rounds:
            break
        played = play_round(left, number, clock)
        found = objections(played)
        for name, reason in found.items():
            contest.set_aside.append(f"round {number}: {name or 'machine'}: {reason}")
            say(contest.set_aside[-1])
        for name in found.keys() & left.keys():
            wrong[name] += 1
            if wrong[name] == WRONG_LIMIT:
                contest.withdrawn[name] = found[name]
                del left[name]
        if not found and number > 0:
            contest.rounds.append(played)
    return without(contest)


def without(contest: Contest) -> Contest:
    """Take the withdrawn out of the rounds they had been in."""
    contest.rounds = [
        Round(
            {name: done for name, done in played.samples.items() if name not in contest.withdrawn},
            played.spent,
        )
        for played in contest.rounds
    ]
    return contest

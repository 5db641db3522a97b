"""A federation that stays up while it is struck by faults at random, and what came of it.

A late joiner begins it and a site that leaves for good ends it. In between the kind of a fault, its victim, its moment
and how long it lasts are drawn from a seed. A study that ends is followed by another, until all faults have happened;
each is then replayed in the simulator with those who took part in each round.
"""

import math
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from confrere.deploy.journal import read_journal
from confrere.deploy.opening import Opening
from confrere.deploy.stations import is_over, want_study
from confrere.deploy.study import Deployed, study_of
from confrere.deploy.twin import model_at, simulated
from tests import faults
from tests.faults import HUB, Follower, Frail, Outcome, Strike, run_fault, wait_for, whole_again
from tests.federation import PATIENCE
from tests.hospitals import SITES, study, tables

ROUNDS = 2000


class Kind(NamedTuple):
    """How often a fault comes, whom it strikes, and how long it lasts at most, in seconds."""

    strike: Strike
    often: int
    victims: tuple[str, ...] = SITES
    lasts: float = 0.0


KINDS = {
    "kill -9 of a site's job process": Kind(faults.kill_job, 8),
    "kill -9 of the hub's job process": Kind(faults.kill_job, 2, (HUB,)),
    "kill -9 of a site's engine": Kind(faults.kill_engine, 2),
    "kill -9 of the hub's engine": Kind(faults.kill_engine, 1, (HUB,)),
    "kill -9 of a site's host": Kind(faults.kill_host, 3, lasts=5),
    "kill -9 of the hub's host": Kind(faults.kill_host, 1, (HUB,), lasts=5),
    "frozen network": Kind(faults.freeze_network, 4, lasts=12),
    "slow site": Kind(faults.stop_job, 4, lasts=12),
    "full disk at a site": Kind(faults.fill_disk, 3, lasts=4),
    "full disk at the hub": Kind(faults.fill_disk, 2, (HUB,), lasts=4),
    "clock jumps at a site": Kind(faults.jump_clock, 2, lasts=4),
    "clock jumps at the hub": Kind(faults.jump_clock, 1, (HUB,), lasts=4),
}


class Told(NamedTuple):
    """What came of a campaign."""

    outcomes: list[Outcome]
    rounds: int
    twice: int  # rounds that were applied twice
    difference: float  # the largest between models at sites and the simulator's
    states_kept: int  # of any site, at most


def drawn(federation: Frail, dice: random.Random, count: int) -> list[tuple[str, str, float]]:
    """Faults at random: kind, victim, seconds; those that this machine does not allow are left out."""
    able = {
        name: kind for name, kind in KINDS.items()
        if (federation.small or kind.strike is not faults.fill_disk)
        and (federation.jumpy or kind.strike is not faults.jump_clock)
    }  # fmt: skip
    names = dice.choices(list(able), [kind.often for kind in able.values()], k=count)
    names[: len(able)] = dice.sample(list(able), min(count, len(able)))  # each at least once
    dice.shuffle(names)
    return [(name, dice.choice(KINDS[name].victims), dice.uniform(0.3, 1) * KINDS[name].lasts) for name in names]


def struck_study(seed: int) -> Deployed:
    """Rounds of half a second or so; who has not answered after six is not waited for."""
    more = f"double = true\nseed = {seed}"
    text = study("scaffold", "lr = 0.01, batch = 8, steps = 300", more).content.decode()
    text = text.replace("rounds = 10", f"rounds = {ROUNDS}").replace("deadline = 120.0", "deadline = 6.0")
    return study_of(f"{text}measure = false\n".encode())


def campaign(
    folder: Path, count: int, seed: int, seconds: float = math.inf, say: Callable[[Outcome], Any] = lambda outcome: None
) -> Told:
    """Strike a federation so many times, a late joiner and a site that leaves not counted; none after `seconds`."""
    dice = random.Random(seed)
    federation = Frail(folder)
    federation.provision()
    studies: list[Deployed] = []
    outcomes: list[Outcome] = []
    try:
        federation.start(HUB, *SITES[:-1])
        left, ends = drawn(federation, dice, count), time.monotonic() + seconds
        while (left and time.monotonic() < ends) or not studies:
            studies.append(struck_study(seed * 1000 + len(studies)))
            outcomes += struck(federation, studies[-1], left, dice, len(studies) == 1, ends, say)
        studies.append(struck_study(seed * 1000 + len(studies)))
        outcomes.append(left_for_good(federation, studies[-1], dice.choice(SITES)))
        say(outcomes[-1])
        return told(federation, studies, outcomes)
    finally:
        federation.stop()


def struck(
    federation: Frail, asked: Deployed, left: list[tuple[str, str, float]], dice: random.Random, late: bool,
    ends: float, say: Callable[[Outcome], Any],
) -> list[Outcome]:  # fmt: skip
    """One study, and the faults that happen while it runs; those are taken from the list."""
    federation.approve(asked)
    want_study(federation.hub, asked)
    follower = Follower(federation.folder(asked))
    found: list[Outcome] = []
    if late:
        federation.wait(lambda: any(line["event"] == "round" for line in follower.look()))
        began = time.monotonic()
        federation.start(SITES[-1])
        back = wait_for(lambda: whole_again(follower, 0), PATIENCE)
        assert back is not None, federation.logs()
        found.append(Outcome("late joiner", SITES[-1], None, back - began, 0.0, len(follower.lines)))
        say(found[-1])
    else:
        assert wait_for(lambda: whole_again(follower, 0), PATIENCE) is not None, federation.logs()
    while left and time.monotonic() < ends and not over(follower):
        time.sleep(dice.uniform(0, 2))
        kind, victim, lasts = left.pop()
        found.append(run_fault(federation, follower, kind, KINDS[kind].strike, victim, lasts))
        say(found[-1])
    federation.wait(lambda: is_over(federation.folder(asked)))
    return found


def left_for_good(federation: Frail, asked: Deployed, victim: str) -> Outcome:
    """A site that leaves and does not come back: the others go on to the end."""
    federation.approve(asked)
    want_study(federation.hub, asked)
    follower = Follower(federation.folder(asked))
    assert wait_for(lambda: whole_again(follower, 0), PATIENCE) is not None, federation.logs()
    began, seen = time.monotonic(), len(follower.lines)
    faults.kill_host(federation, victim)
    found = wait_for(lambda: faults.noticed(follower, seen, victim), PATIENCE)
    federation.wait(lambda: is_over(federation.folder(asked)))
    assert follower.look()[-1]["event"] == "finished", follower.lines[-1]
    assert victim not in follower.lines[-1]["answered"]
    missed = sum(line["event"] == "round" and victim not in line["answered"] for line in follower.lines)
    return Outcome("a site leaves for good", victim, found and found - began, 0.0, time.monotonic() - began, missed)


def over(follower: Follower) -> bool:
    return follower.look()[-1]["event"] == "finished"


def told(federation: Frail, studies: list[Deployed], outcomes: list[Outcome]) -> Told:
    """Look at what is left behind, and compare it with the simulator."""
    rounds, twice, worst = 0, 0, 0.0
    for asked in studies:
        journal = read_journal(federation.folder(asked))
        lines = [line for line in journal if line["event"] == "round"]
        rounds += len(lines)
        numbers = [line["round"] for line in lines]
        assert sorted(set(numbers)) == list(range(1, ROUNDS + 1)), numbers
        twice += len(numbers) - len(set(numbers))
        active = np.array([[name in line["answered"] for name in SITES] for line in lines])
        opening = Opening.load(federation.folder(asked))
        history = simulated(asked, tables(federation.sites), active, opening)
        worst = max([worst, *(distance(federation, asked, name, history) for name in journal[-1]["answered"])])
    stores = [place for home in federation.sites.values() for place in (home / "state").iterdir()]
    return Told(outcomes, rounds, twice, worst, max(len(list(place.glob("round-*"))) for place in stores))


def distance(federation: Frail, asked: Deployed, name: str, history) -> float:
    """How far the model at a site is from the simulator's."""
    found, worst = federation.model(name, asked), 0.0
    assert found is not None, f"{name} has no model"
    for path, leaf in jax.tree.leaves_with_path(model_at(history, name)):
        own = found["/".join(["0", *(str(step.key) for step in path)])]
        worst = max(worst, float(np.abs(own - leaf).max() / max(1, np.abs(leaf).max())))
    return worst

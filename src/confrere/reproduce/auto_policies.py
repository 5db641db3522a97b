"""Policies: which candidates `auto` averages, and with which prior weights; what each would have cost.

A policy gives candidate c the weight prior_c exp(-n score_c), normalised, where score is the mean loss on the user's
rows held out. `present` is the four borrowing candidates with equal priors. To be decided on are the purely local ones,
`local` (the user's ridge optimum) and `local.1` (with a tenth of the ridge); `share` is their prior together.

Regret is the mean loss over seeds minus that of the best fixed candidate of the cell, chosen afterwards.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from confrere.borrowing.candidates import CANDIDATES, LOCAL
from confrere.reproduce.auto_runs import ALL, Outcome, Seen, loss_on

EVEN_SHARE = 1 / 3  # two of six candidates


class Policy(NamedTuple):
    """When purely local candidates take part, and with which prior weight together."""

    name: str
    share: float = 0.0
    local: tuple[str, ...] = LOCAL
    least_rows: int = 0
    below_relevance: float | None = None  # only if the others' mean relevance is below
    margin: float | None = None  # only if one of them is better by so much in total held-out loss


FIRST_LOOK = (
    Policy("present: no local candidate"),
    Policy("local and local.1 always", EVEN_SHARE),
    Policy("local.1 always", 1 / 5, ("local.1",)),
    Policy("local always", 1 / 5, ("local",)),
    Policy("both from 40 rows", EVEN_SHARE, least_rows=40),
    Policy("both from 60 rows", EVEN_SHARE, least_rows=60),
    Policy("both from 100 rows", EVEN_SHARE, least_rows=100),
    Policy("both, prior .1", 0.1),
    Policy("both, prior .03", 0.03),
    Policy("both, prior .01", 0.01),
    Policy("both, prior .001", 0.001),
    Policy("local.1, prior .1", 0.1, ("local.1",)),
    Policy("local.1, prior .03", 0.03, ("local.1",)),
    Policy("both, prior .1, from 40 rows", 0.1, least_rows=40),
    Policy("both, prior .03, from 40 rows", 0.03, least_rows=40),
    Policy("both, relevance below .5", EVEN_SHARE, below_relevance=0.5),
    Policy("both, relevance below .8", EVEN_SHARE, below_relevance=0.8),
    Policy("both, better by 2 in all", EVEN_SHARE, margin=2.0),
    Policy("both, better by 4 in all", EVEN_SHARE, margin=4.0),
)
SECOND_LOOK = (  # combinations added after the table of POLICIES on the reserved cells had been seen
    Policy("both, relevance below .5, from 40 rows", EVEN_SHARE, least_rows=40, below_relevance=0.5),
    Policy("both, relevance below .5, from 60 rows", EVEN_SHARE, least_rows=60, below_relevance=0.5),
    Policy("both, prior .1, relevance below .5", 0.1, below_relevance=0.5),
    Policy("both, prior .1, relevance below .5, from 40 rows", 0.1, least_rows=40, below_relevance=0.5),
    Policy("local.1, relevance below .5, from 40 rows", 1 / 5, ("local.1",), least_rows=40, below_relevance=0.5),
)
POLICIES = (*FIRST_LOOK, *SECOND_LOOK)


def priors(policy: Policy, takes_part: np.ndarray) -> np.ndarray:
    """Prior weights [E, C] of the candidates, those of the policy's local ones zero where they do not take part."""
    given = np.where(takes_part, policy.share, 0.0)[:, None]
    local = np.array([name in policy.local for name in ALL]) / max(len(policy.local), 1)
    borrowing = np.array([name in CANDIDATES for name in ALL]) / len(CANDIDATES)
    return given * local + (1 - given) * borrowing


def takes_part(policy: Policy, seen: Seen) -> np.ndarray:
    """In which cases [E] the local candidates take part."""
    part = (seen.rows >= policy.least_rows) & (policy.share > 0)
    if policy.below_relevance is not None:
        part &= seen.chance.mean(axis=1) < policy.below_relevance
    if policy.margin is not None:
        total = seen.rows[:, None] * seen.scores
        chosen = np.array([name in policy.local for name in ALL])
        borrowing = np.array([name in CANDIDATES for name in ALL])
        part &= total[:, chosen].min(axis=1) < total[:, borrowing].min(axis=1) - policy.margin
    return part


def weights(policy: Policy, seen: Seen) -> np.ndarray:
    """Weights [E, C]; `pair` alone where there are not two rows of a second class."""
    with np.errstate(divide="ignore"):
        logits = np.log(priors(policy, takes_part(policy, seen))) - seen.rows[:, None] * seen.scores
    raw = np.exp(logits - logits.max(axis=1, keepdims=True))
    only_pair = np.array([name == "pair" for name in ALL], float)
    return np.where(seen.second[:, None] >= 2, raw / raw.sum(axis=1, keepdims=True), only_pair)


def losses(policy: Policy, outcome: Outcome) -> np.ndarray:
    """Test log-loss and accuracy [E, 2] of the policy's average."""
    theta = np.einsum("ec,ecd->ed", weights(policy, outcome.seen), outcome.seen.theta)
    return np.array([loss_on(t, test, outcome.cell.task) for t, test in zip(theta, outcome.tests, strict=True)])


def fixed_losses(outcome: Outcome) -> np.ndarray:
    """The same of every candidate by itself: [E, C, 2]."""
    cases = zip(outcome.seen.theta, outcome.tests, strict=True)
    return np.array([[loss_on(theta, test, outcome.cell.task) for theta in each] for each, test in cases])


class Row(NamedTuple):
    """A cell's means over seeds: [P, 2] of the policies and [C, 2] of the fixed candidates; log-loss, accuracy."""

    name: str
    family: str
    policies: np.ndarray
    fixed: np.ndarray
    error: np.ndarray  # [P] standard error of the log-loss difference to the first policy

    def regret(self) -> np.ndarray:
        """[P, 2]: how much worse than the best fixed candidate of the cell, chosen afterwards."""
        return np.stack([
            self.policies[:, 0] - self.fixed[:, 0].min(), self.fixed[:, 1].max() - self.policies[:, 1]
        ], axis=1)  # fmt: skip

    def change(self) -> np.ndarray:
        """[P]: log-loss minus that of the first policy."""
        return self.policies[:, 0] - self.policies[0, 0]


def row_of(outcome: Outcome, policies: Sequence[Policy] = POLICIES) -> Row:
    """Every policy and every fixed candidate on one cell."""
    each = np.stack([losses(policy, outcome) for policy in policies])  # [P, E, 2]
    change = each[:, :, 0] - each[0, :, 0]
    error = change.std(axis=1, ddof=1) / np.sqrt(change.shape[1]) if change.shape[1] > 1 else np.zeros(len(change))
    family = outcome.cell.source.rstrip("0123456789")
    return Row(outcome.cell.name, family, each.mean(axis=1), fixed_losses(outcome).mean(axis=0), error)


def by_family(rows: Sequence[Row], values: np.ndarray) -> np.ndarray:
    """The mean over cells [R, ...] in which every data set counts the same, however many cells it has."""
    families = dict.fromkeys(row.family for row in rows)
    return np.mean([values[[row.family == family for row in rows]].mean(axis=0) for family in families], axis=0)

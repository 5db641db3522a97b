"""What the site of a finished model is told of its rounds: who answered how often, and who counted for how much.

The hub takes it from its journal; the site keeps it beside the model, for the model's card and its report.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from confrere.history import row_for

MOST_TOLD = 2000  # weights that are told; of more rounds than fit, some from the first to the last


class Chronicle(NamedTuple):
    """The rounds behind a model, as the hub tells them."""

    rounds: int = 0
    abandoned: int = 0
    answered: Mapping[str, int] = {}  # site -> rounds in which its message counted
    weights: Mapping[str, tuple[float, ...]] = {}  # site -> its weight in the rounds that are told; empty: not known

    @classmethod
    def of(cls, lines: Sequence[Mapping[str, Any]], names: Sequence[str], place: int, per_silo: bool) -> "Chronicle":
        """From the lines of a journal, for the site at a place."""
        rounds = [line for line in lines if line["event"] == "round"]
        answered = {name: sum(name in line["answered"] for line in rounds) for name in names}
        known = bool(rounds) and all(line.get("weights") for line in rounds)
        row = row_for(np.array([line["weights"] for line in rounds]), place, per_silo) if known else np.zeros((0, 0))
        count = min(len(rounds), max(2, MOST_TOLD // len(names)))
        some = row[np.linspace(0, len(rounds) - 1, count).round().astype(int)] if known else row
        weights = {name: tuple(some[:, i].tolist()) for i, name in enumerate(names)} if known else {}
        return cls(len(rounds), sum(line["event"] == "abandoned" for line in lines), answered, weights)

    @classmethod
    def heard(cls, facts: Any) -> "Chronicle":
        """As a site reads it: whatever is not what it should be counts as not said."""
        try:
            answered = {str(site): int(count) for site, count in facts["answered"].items()}
            weights = {str(site): tuple(map(float, row)) for site, row in facts["weights"].items()}
            found = cls(int(facts["rounds"]), int(facts["abandoned"]), answered, weights)
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
            return cls()
        if min(found.rounds, found.abandoned, *answered.values()) < 0:
            return cls()
        rows = list(weights.values())
        fits = len({len(row) for row in rows}) == 1 and rows[0] and np.isfinite(rows).all()
        return found if fits else found._replace(weights={})

    def told(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return self._asdict()

    @property
    def shares(self) -> dict[str, float]:
        """Every site's share of the weight, averaged over the rounds; empty if that is not known.

        >>> Chronicle(2, 0, {}, {"north": (1.0, 1.0), "south": (1.0, 0.0)}).shares
        {'north': 0.75, 'south': 0.25}
        """
        if not self.weights:
            return {}
        row = np.array(list(self.weights.values()))
        total = row.sum(axis=0)
        mean = (row / np.where(total > 0, total, 1)).mean(axis=1)
        return dict(zip(self.weights, (mean / (mean.sum() or 1)).tolist(), strict=True))

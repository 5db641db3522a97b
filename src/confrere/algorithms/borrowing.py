"""Evidence-weighted borrowing, the algorithm behind `auto`."""

from collections.abc import Sequence

from confrere import clients, mixers
from confrere.borrowing.candidates import CANDIDATES, LOCAL
from confrere.borrowing.summary import MIN_CELL, SHARES, Share
from confrere.checks import check_counts
from confrere.core import Algorithm, federate
from confrere.models import Model
from confrere.prior import Prior
from confrere.recipe import Recipe

EVIDENCE_ROUNDS = 6  # one message around the own optimum, five around the pooled one


def evidence(
    user: int | str | None = None, share: Share = "full", min_cell: int = MIN_CELL,
    candidates: Sequence[str] = CANDIDATES,
    prior: Prior = None,
) -> Recipe:  # fmt: skip
    """Evidence-weighted borrowing: the user's own rows judge how related every silo is, and borrow accordingly.

    Each silo sends one message (its losses to second order around its own optimum) and, to be pooled, a few more around
    a common point: 6 rounds are enough. With a user, that silo sends nothing at all; without one, everybody ends with
    a model of its own. For linear and logistic models, on standardised features. See `confrere.borrowing` for the
    formulas, for what `share` ("full", "diagonal", "parameters", "sum") costs and reveals, and for `min_cell`.

    >>> import confrere as cf
    >>> cf.evidence(user=0).hyper
    {'user': 0}
    """
    if share not in SHARES:
        raise ValueError(f"share must be one of {', '.join(SHARES)}, not {share!r}")
    if share == "sum" and user is None:
        raise ValueError("share='sum' needs a user: what is summed cannot be taken apart for everybody")
    named = () if isinstance(candidates, str) or not isinstance(candidates, Sequence) else candidates
    if not named or any(name not in (*CANDIDATES, *LOCAL) for name in named):
        raise ValueError(f"candidates must be some of {', '.join((*CANDIDATES, *LOCAL))}, not {candidates!r}")
    check_counts(min_cell=min_cell)
    static = {"share": share, "min_cell": min_cell, "candidates": tuple(named)}
    return Recipe.of(_evidence, "evidence", static, whole=True, user=user, prior=prior)._replace(rounds=EVIDENCE_ROUNDS)


def _evidence(model: Model, share: Share, min_cell: int, candidates: tuple[str, ...], user=None) -> Algorithm:
    return federate(clients.summaries(model, share, min_cell, candidates), mixers.bulletin(user, share))

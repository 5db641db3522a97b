"""The adapted Ndoye factor: how much worse silo i's own model does on the user's rows than at home.

    transfer_i = mean loss of f_i on S_0  -  cross-validated loss of f_i on S_i        lower is better

Every silo trains f_i on its own rows and says how it does on rows that were held out, by `folds`-fold cross-validation;
the user measures f_i on its own rows. One message to a silo and one back: the model, and one number.

Grimberg: semester project report (2020), section 4.3. The size of S_i, on which the loss of f_i depends wherever it is
measured, cancels to a large part in the difference.

The loss that a silo reports cannot be checked: one who says that it does badly at home looks as if it transferred well.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere.borrowing.glm import Rows
from confrere.checks import check_counts, check_numbers
from confrere.core import Tree, byte_size
from confrere.data.silo import fold_numbers
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.models.model import row_losses as losses_of_rows
from confrere.selection.asking import LEAST, NO_ANSWER, NOT_FINITE, Others, asked, finite_tree, start_with
from confrere.selection.descent import Descent, offers_by_descent
from confrere.selection.linear import linear_rows, model_params, row_losses
from confrere.selection.pool import optimum_alone
from confrere.selection.resampling import RESAMPLES, means_of_resamples, percentiles
from confrere.selection.selection import Crossing, Selection
from confrere.selection.words import between, signed


class Offer(NamedTuple):
    """What a silo sends: its model's parameters, and its cross-validated loss at home."""

    model: Tree
    loss: np.float32


Heard = Callable[[str, Offer], Offer | None]  # (silo, what it would say) -> what arrives; None: nothing


def ndoye(
    silos: Silos,
    user: int | str,
    folds: int = 4,
    model: Model | None = None,
    *,
    l2: float = 0.01,
    others: Others = "all",
    silent: Sequence[str] = (),
    min_count: int = LEAST,
    heard: Heard | None = None,
    descent: Descent | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """Rank silos by how well their own models carry over to the user's rows; lower is better.

    Args:
        model: by default logistic regression for classes, linear regression for amounts.
        l2: of the objective mean loss + l2/2 |w|^2.
        others: "all": the other silos use all their rows; "train": their training rows only.
        silent: silos that never answered: they are left out, and training can start without them.
        min_count: silos with fewer training rows (2 at least) are not asked, as what they sent would be about so few.
        heard: (silo, offer) -> what arrives in place of its offer (None: nothing), e.g. to play a silo that lies.
        descent: how models without a closed form (networks) are trained, by default 200 steps.
        resamples: draws of the user's rows behind the intervals; the models that silos sent stay as they are.

    By default those before the largest gap are kept; see `Selection` for other choices.

    >>> import confrere as cf
    >>> found = cf.selection.ndoye(cf.data.titanic("age-some"), user="0-35 a")
    >>> found.ranking, found.kept
    (['0-35 b', '36+', 'unknown'], ('0-35 b',))
    """
    check_counts(resamples=resamples, min_count=min_count, folds=folds)
    silos, place, model = start_with(silos, user, model, others)
    if folds < 2:
        raise ValueError(f"there must be 2 folds or more, not {folds}")
    who, without = asked(silos, place, silent, max(min_count, 2))
    offers = offers_of(silos, who, folds, model, l2, descent or Descent(), seed)
    if heard is not None:
        offers = {name: said for name, offer in offers.items() if (said := heard(name, offer)) is not None}
    without |= {name: NO_ANSWER for name in who if name not in offers}
    without |= {name: NOT_FINITE for name, offer in offers.items() if not finite_tree(offer)}
    request = len(json.dumps({"method": "ndoye", "model": model.name, "folds": folds, "l2": l2}))
    found = judged(silos, place, model, {n: o for n, o in offers.items() if n not in without}, resamples, seed)
    crossings = tuple(
        Crossing(n, "a request; its model and its cross-validated loss", byte_size(offers[n]), request)
        if n in offers
        else Crossing(n, "a request", 0, request)
        for n in silos.names
        if n in offers or without.get(n) == NO_ANSWER
    )
    return assembled(silos, place, found, without, crossings)


def offers_of(
    silos: Silos, who: Sequence[str], folds: int, model: Model, l2: float, descent: Descent, seed: int
) -> dict[str, Offer]:
    """Every silo's own half of the method: each looks at its own rows alone."""
    check_numbers(l2=l2)
    folding = {name: folds_of(silos, name, folds, seed) for name in who}
    if model.name not in ("linear", "logistic"):
        trained = offers_by_descent(silos, folding, folds, model, l2, descent, seed)
        return {name: Offer(params, np.float32(loss)) for name, (params, loss) in trained.items()}
    offers = {}
    with jax.enable_x64(True):
        data = linear_rows(silos, model, l2, "ndoye")
        for name in who:
            rows = data.of(silos.index(name))
            theta = optimum_alone(rows, data.penalty, model.task)
            loss = cross_validated(rows, folding[name], data.penalty, model.task)
            offers[name] = Offer(model_params(data, theta), np.float32(loss))
    return offers


def cross_validated(rows: Rows, fold: np.ndarray, penalty: np.ndarray, task: str) -> float:
    """The mean loss of one silo's rows, each under the optimum of the other folds."""
    return float(held_out_losses(rows, fold, penalty, task).sum()) / len(fold)


def held_out_losses(rows: Rows, fold: np.ndarray, penalty: np.ndarray, task: str) -> np.ndarray:
    """The loss of each of one silo's rows under the optimum of the other folds."""
    weight, found = np.asarray(rows.weight), np.zeros(len(fold))
    for left_out in np.unique(fold):
        tested = np.zeros(len(weight), bool)
        tested[: len(fold)] = fold == left_out
        theta = optimum_alone(rows._replace(weight=jnp.asarray(weight * ~tested)), penalty, task)
        found[fold == left_out] = np.asarray(row_losses(rows, theta, task))[tested]
    return found


def folds_of(silos: Silos, name: str, folds: int, seed: int) -> np.ndarray:
    """A fold for every training row; the same for equal rows, wherever the silo stands."""
    y = silos[name].rows("train")[1]
    return fold_numbers(y, min(folds, len(y)), np.random.default_rng(seed))


class Judged(NamedTuple):
    """What the user found, silo by silo that was heard."""

    offers: Mapping[str, Offer]
    losses: Mapping[str, float]  # on the user's rows
    low: Mapping[str, float]
    high: Mapping[str, float]


def judged(silos: Silos, user: int, model: Model, offers: Mapping[str, Offer], resamples: int, seed: int) -> Judged:
    """The user's half: every model measured on its rows, which stay where they are."""
    X, y = silos[user].rows("train")
    with jax.enable_x64(True):
        labels = jnp.asarray(y, jnp.int32 if model.task == "classification" else jnp.float64)
        scores = [model.apply(offer.model, jnp.asarray(X, jnp.float64)) for offer in offers.values()]
        rows = [np.asarray(losses_of_rows(model.task, s, labels), float) for s in scores]
    if not rows:
        return Judged(offers, {}, {}, {})
    low, high = percentiles(means_of_resamples(np.stack(rows), resamples, seed))
    home = [float(offer.loss) for offer in offers.values()]
    return Judged(
        offers,
        {n: float(r.mean()) for n, r in zip(offers, rows, strict=True)},
        {n: float(v - h) for n, v, h in zip(offers, low, home, strict=True)},
        {n: float(v - h) for n, v, h in zip(offers, high, home, strict=True)},
    )


def assembled(
    silos: Silos, user: int, found: Judged, without: Mapping[str, str], crossings: tuple[Crossing, ...]
) -> Selection:
    """The selection, those before the largest gap kept."""
    nothing = dict.fromkeys(silos.names, np.nan)
    scores = nothing | {n: loss - float(found.offers[n].loss) for n, loss in found.losses.items()}
    reasons = dict(without)
    for name, loss in found.losses.items():
        reach = between(found.low[name], found.high[name])
        reasons[name] = (
            f"its model loses {loss:.4f} a row on the user's rows, and {float(found.offers[name].loss):.4f} on rows of "
            f"its own that it had not seen (no intervals): {signed(scores[name])} in transfer ({reach})"
        )
    column = lambda values: np.array([values[name] for name in silos.names], float)  # noqa: E731
    prior = np.array([1.0 if i == user or n in found.losses else 0.0 for i, n in enumerate(silos.names)])
    return Selection(
        "ndoye", silos.names, user, column(scores), column(nothing | dict(found.low)),
        column(nothing | dict(found.high)), True, reasons, crossings,
        "the user's rows resampled, the silos' models and losses as they were sent",
        "loss a row on the user's rows, less that at home", prior,
    ).drop()  # fmt: skip

"""The program of a study: experiments of one algorithm on cases of one shape, vmapped.

Cases, then folds, then candidates: the rows differ by case and fold, so that the candidates of a fold share them and
no row is copied for a candidate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from confrere.core import Block, Record, Tree
from confrere.models import METRICS, Model
from confrere.recipe import Bound
from confrere.study.cases import Folds


class Program(NamedTuple):
    """What is static about a program."""

    make: Bound
    model: Model
    metrics: tuple[str, ...]
    rounds: int
    personal: bool  # whether the algorithm is told who the user is
    shared: bool  # whether all experiments of a case draw the same batches
    side_by_side: tuple[bool, bool] = (True, True)  # folds, candidates: at once, or one after the other
    only_last: bool = False  # whether only the model of the last round is of interest


class Runs(NamedTuple):
    """Experiments of one case, or stacked, of several: F folds x P candidates."""

    train: Block
    folds: Folds
    user: Any  # int32
    params: Tree
    key: Any  # [2] uint32
    hyper: dict[str, Any]  # [P]
    number: Any  # [P] which candidates these are


class Curves(NamedTuple):
    """What is kept of experiments, [F, P, ...]: metrics before round 1 and after each, and who counted in each."""

    metrics: dict[str, Any]  # [..., R + 1]
    partners: Any  # [..., R] how many other silos had a weight above 0; -1 where a rule gives no weights
    borrowed: Any  # [..., R] the others' share of the weight; NaN where a rule gives no weights


def case_curves(program: Program, runs: Runs) -> Curves:
    """All experiments of one case."""

    def of_fold(fold: Folds, fold_number):
        train = without_fold(runs.train, runs.user, fold)
        key = jax.random.wrap_key_data(runs.key)

        def of_candidate(hyper, number):
            own = key if program.shared else jax.random.fold_in(jax.random.fold_in(key, fold_number), number)
            return experiment(program, hyper, own, runs.params, train, fold, runs.user)

        return over(of_candidate, program.side_by_side[1])(runs.hyper, runs.number)

    folds = runs.folds.kept.shape[0]
    first = 0 if folds == 1 else 1  # fold 0 is the run that is reported
    return over(of_fold, program.side_by_side[0])(runs.folds, first + jnp.arange(folds))


def over(function: Callable[..., Any], side_by_side: bool) -> Callable[..., Any]:
    """The function for every row of its arguments, at once or one after the other.

    Of a single row the function is traced as it is: to batch it takes as long as to trace it.
    """

    def every(*arguments):
        if jax.tree.leaves(arguments)[0].shape[0] == 1:
            found = function(*jax.tree.map(lambda a: jnp.squeeze(a, 0), arguments))
            return jax.tree.map(lambda a: jnp.expand_dims(a, 0), found)
        if side_by_side:
            return jax.vmap(function)(*arguments)
        return jax.lax.map(lambda one: function(*one), arguments)

    return every


def without_fold(train: Block, user, fold: Folds) -> Block:
    """The training rows, the user's being those that remain."""
    own_X, own_y = train.X[user][fold.order], train.y[user][fold.order]
    return train._replace(
        X=train.X.at[user].set(own_X), y=train.y.at[user].set(own_y), size=train.size.at[user].set(fold.kept)
    )


def experiment(program: Program, hyper, key, params: Tree, train: Block, held: Folds, user) -> Curves:
    """One run: the user's personal model measured before round 1 and after every round."""
    numbers = {**hyper, "user": user} if program.personal else hyper
    algorithm = program.make.on(program.model, **numbers)
    live = jnp.arange(held.y.shape[0]) < held.count

    def measured(state) -> dict[str, jax.Array]:
        scores = program.model.apply(algorithm.personal(state, train, user), held.X)
        return {name: METRICS[name](scores, held.y, live) for name in program.metrics}

    def one_round(state, _):
        state, record = algorithm.update(state, train, key)
        now: dict[str, jax.Array] = {} if program.only_last else measured(state)
        return state, (now, *scope(record, user, algorithm.mixer.per_silo))

    start = algorithm.init(params, train)
    end, (after, partners, borrowed) = jax.lax.scan(one_round, start, length=program.rounds)
    if program.only_last:
        unknown = jnp.full(program.rounds, jnp.nan)
        curves = {name: jnp.append(unknown, value) for name, value in measured(end).items()}
        return Curves(curves, partners, borrowed)
    before = measured(start)
    return Curves({name: jnp.concatenate([before[name][None], after[name]]) for name in after}, partners, borrowed)


def scope(record: Record, user, per_silo: bool) -> tuple[jax.Array, jax.Array]:
    """How many others had a weight above 0 in a round, and their share of all weight."""
    if record.weights is None:
        return jnp.int32(-1), jnp.asarray(jnp.nan)
    n = record.weights.shape[1]
    own = user if per_silo else record.weights[:, user].argmax()  # see `history.row_for`
    row = record.weights[own]
    counted = jnp.where(record.arrived & (row > 0), row, 0)
    others = jnp.where(jnp.arange(n) == user, 0, counted)
    total = counted.sum()
    share = jnp.where(total > 0, others.sum() / jnp.where(total > 0, total, 1), 0)
    return (others > 0).sum(dtype=jnp.int32), share

"""What the Weight Erosion experiments share: each silo as the user once, all runs of a scheme in one compiled program.

Four schemes: Weight Erosion, training alone, the average of everybody ("FedAvg", "Global") done right, and that average
as the authors' program computed it (see `confrere.reproduce.published`). The authors' loss is half the usual
cross-entropy plus 1e-3/2 |params|^2: in ordinary terms the cross-entropy, an L2 coefficient of 2e-3 and half their
learning rate.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere import algorithms
from confrere.core import Block, Tree
from confrere.data.silos import Silos
from confrere.models import logistic
from confrere.program import Setup, Trace, numbers, rollout
from confrere.recipe import Recipe
from confrere.reproduce.published import batch_mean_accuracy, fedavg_as_published

ROUNDS = 30
AUTHORS_SEED = 278
L2 = 2e-3
NAMES = ("weight_erosion", "local", "fedavg", "fedavg_as_published")


class Experiments(NamedTuple):
    """Runs stacked one behind the other: each has its user, rows, start and key."""

    user: np.ndarray  # [E]
    train: Block  # [E, n, ...]
    test: Block
    params: Tree
    seed: np.ndarray  # [E]


class Result(NamedTuple):
    """What the runs of one algorithm gave."""

    accuracy: np.ndarray  # [E, ROUNDS + 1] by rows, before round 1 and after every round
    alpha: np.ndarray  # [E, ROUNDS, n]
    distance: np.ndarray  # [E, ROUNDS, n]
    params: Tree  # [E, ...] the user's model at the end
    correct: list[np.ndarray]  # per run, which test rows the final model gets right


def schemes(batch: int, lr: float, fedavg_lr: float, published_lr: float) -> dict[str, Recipe]:
    """The papers' three schemes, and their FedAvg as it was run; the user is a number still to be filled in."""
    how: dict[str, Any] = {"batch": batch, "order": "cyclic", "l2": L2}
    return {
        "weight_erosion": algorithms.weight_erosion(0, lr, p_d=0.01, p_s=0.2, passes="code", **how),
        "local": algorithms.local(lr, steps=1, **how),
        "fedavg": algorithms.fedsgd(fedavg_lr, weights="uniform", **how),
        "fedavg_as_published": fedavg_as_published(0, published_lr, **how),
    }


def experiments(starts: Sequence[tuple[Silos, Tree]], seeds: Sequence[int]) -> Experiments:
    """Every silo as user of every start, stacked; blocks padded to the same number of rows."""
    cases = [(silos.for_user(u), u, params, seed) for (silos, params), seed in zip(starts, seeds, strict=True)
             for u in range(len(silos))]  # fmt: skip
    rows = {part: max(max(silos.sizes(part)) for silos, *_ in cases) for part in ("train", "test")}
    stack = lambda *leaves: np.stack(leaves)  # noqa: E731
    return Experiments(
        user=np.array([u for _, u, _, _ in cases], np.int32),
        train=jax.tree.map(stack, *[silos.block("train", rows["train"]) for silos, *_ in cases]),
        test=jax.tree.map(stack, *[silos.block("test", rows["test"]) for silos, *_ in cases]),
        params=jax.tree.map(stack, *[params for _, _, params, _ in cases]),
        seed=np.array([seed for *_, seed in cases]),
    )


def run(recipe: Recipe, batch: Experiments) -> Result:
    """All experiments of one algorithm in one compiled program."""
    model = logistic()
    hyper = {**numbers(recipe.hyper)}
    personal = "user" in hyper
    hyper.pop("user", None)
    setup = Setup(recipe.make, model, metrics=("accuracy",), losses=False)  # type: ignore[arg-type]
    trace, params, scores = _run(setup, personal, hyper, batch)
    curves = jnp.concatenate([trace.before.metrics["accuracy"][:, None], trace.entries.scores.metrics["accuracy"]], 1)
    right = np.asarray(scores.argmax(-1)) == user_rows(batch.test.y, batch.user)
    sizes = user_rows(batch.test.size, batch.user)
    return Result(
        accuracy=np.asarray(curves)[:, :, 0],
        alpha=np.asarray(trace.entries.record.weights)[:, :, 0],
        distance=np.asarray(trace.entries.record.observed["distance"]),
        params=jax.tree.map(np.asarray, params),
        correct=[row[:size] for row, size in zip(right, sizes, strict=True)],
    )


def user_rows(values: Any, user: np.ndarray) -> np.ndarray:
    """Of every experiment, what belongs to its user: [E, n, ...] -> [E, ...]."""
    return np.asarray(values)[np.arange(len(user)), user]


def _one(setup: Setup, personal: bool, hyper, case: Experiments) -> tuple[Trace, Tree, jax.Array]:
    numbers_of_case = {**hyper, "user": case.user} if personal else hyper
    key = jax.random.key(case.seed)
    trace = rollout(setup, ROUNDS, numbers_of_case, key, case.params, case.train, case.test, case.user)
    algorithm = setup.algorithm(numbers_of_case)
    params = algorithm.personal(trace.state, case.train, case.user)
    return trace, params, setup.model.apply(params, case.test.X[case.user])


@jax.jit(static_argnums=(0, 1))
def _run(setup: Setup, personal: bool, hyper, batch: Experiments):
    return jax.vmap(lambda case: _one(setup, personal, hyper, case))(batch)


def run_all(recipes: dict[str, Recipe], silos: Silos, params: Tree, seed: int) -> dict[str, Result]:
    """Every scheme from one start, every silo as the user once."""
    batch = experiments([(silos, params)], [seed])
    return {name: run(recipe, batch) for name, recipe in recipes.items()}


def users_report(results: dict[str, Result], batch: int) -> dict[str, Any]:
    """Distances, alphas and final accuracies, user by user."""
    eroded = results["weight_erosion"]
    users = {}
    for u in range(len(eroded.alpha)):
        others = [i for i in range(eroded.alpha.shape[2]) if i != u]
        users[str(u)] = {
            "others": others,
            "distance": eroded.distance[u][:, others].tolist(),
            "alpha": eroded.alpha[u][:, others].tolist(),
            "accuracy": {name: float(results[name].correct[u].mean()) for name in NAMES},
            "accuracy_batch_mean": {name: batch_mean_accuracy(results[name].correct[u], batch) for name in NAMES},
        }
    return users

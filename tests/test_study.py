"""A study gives what a plain loop over `simulate` gives, tuned on the user's training rows only."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest
from sklearn.metrics import log_loss

import confrere as cf
from confrere.study.cases import Shape, cases_of, cross_folds, round_up, seeded_silos
from confrere.study.engine import over
from confrere.study.runner import MOST_CASES, piece_size
from confrere.study.tuning import choose, fold_scores
from confrere.study.units import told_of_labels, units_of

from .study_helpers import small_silos

LOGISTIC = cf.models.logistic()
LOSS = ["log_loss"]  # one metric compiles quicker
RECIPES = {
    "local": cf.local(lr=0.3, batch=8),
    "fedsgd": cf.fedsgd(lr=0.3, batch=8, l2=0.01),
    "weight_erosion": cf.weight_erosion(user=0, lr=0.3, p_d=0.05, batch=8),
}


def single(silos, study, name, user, seed, rounds, candidate=0):
    """The run of one cell by `simulate`."""
    recipe = RECIPES[name]
    recipe = recipe.replace(user=user) if "user" in recipe.hyper else recipe
    data = silos.split(test=0.5, seed=seed)
    key = study.key(name, user, seed, candidate)
    return cf.simulate(recipe, LOGISTIC, data.for_user(user), rounds, key, user=user, params=study.start(seed, data))


def test_every_cell_is_what_a_plain_loop_over_simulate_gives():
    silos = small_silos()
    study = cf.Study(silos, LOGISTIC, RECIPES, seeds=[3, 5], rounds=6, tune=None, baselines=False)
    result = study.run()
    for name in RECIPES:
        for user, user_name in enumerate(silos.names):
            for seed, cell in zip((3, 5), result.of(name, user_name), strict=True):
                history = single(silos, study, name, user, seed, 6)
                for metric in ("accuracy", "balanced_accuracy", "log_loss", "auroc", "brier"):
                    np.testing.assert_allclose(cell.curves[metric][0], history.metrics[metric], rtol=2e-5, atol=2e-6)
                assert cell.bytes_total == int(history.bytes_up[0].sum() + history.bytes_down[0].sum())


def test_the_scope_of_a_round_is_who_counted_in_it():
    silos = small_silos()
    study = cf.Study(silos, LOGISTIC, RECIPES, users=["b"], seeds=1, rounds=6, tune=None, metrics=LOSS)
    result = study.run()
    history = single(silos, study, "weight_erosion", 1, 0, 6)
    share = history.shares[:, 0, :]
    others = share[:, [0, 2]]
    eroded = result.of("weight_erosion", "b")[0]
    np.testing.assert_allclose(eroded.borrowed[0], others.sum(axis=1), rtol=1e-4)
    assert eroded.partners[0].tolist() == (others > 0).sum(axis=1).tolist()
    assert result.of("local", "b")[0].partners.tolist() == [[0] * 6]
    assert result.of("fedsgd", "b")[0].partners.tolist() == [[2] * 6]


def score_by_hand(case, study, name, candidate, recipe, k=5):
    """The cross-validated log-loss of one candidate after the last round, by plain runs and scikit-learn."""
    folds = cross_folds(case, LOGISTIC, k)
    own = case.silos[case.user]
    train = np.flatnonzero(own.part == 0)
    total = 0.0
    for j in range(k):
        kept = train[folds.order[j, : folds.kept[j]]]
        held = np.setdiff1d(train, kept)
        part = np.ones(len(own.y), np.int8)  # neither trained nor tested on
        part[kept], part[held] = 0, 2
        parts = [s.part if i != case.user else part for i, s in enumerate(case.silos.silos)]
        key = study.key(name, case.user, case.seed, candidate, fold=j + 1)
        start = study.start(case.seed, case.silos)
        data = case.silos.with_parts(parts)
        ready = recipe.replace(user=case.user) if "user" in recipe.hyper else recipe
        model = cf.simulate(ready, LOGISTIC, data, 8, key, user=case.user, params=start).personal(case.user)
        scores = own.X[held] @ model["w"] + model["b"]
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        total += len(held) * log_loss(own.y[held], odds / odds.sum(axis=1, keepdims=True), labels=[0, 1])
    return total / len(train)


@pytest.mark.parametrize("name", [pytest.param("local", marks=pytest.mark.slow), "weight_erosion"])
def test_the_chosen_learning_rate_is_that_of_a_plain_loop_over_folds(name):
    silos, rates = small_silos(), [0.03, 0.3, 3.0]
    options = {"users": ["c"], "seeds": [1], "rounds": 8, "grid": {"lr": rates}, "metrics": LOSS, "baselines": False}
    study = cf.Study(silos, LOGISTIC, {name: RECIPES[name]}, **options)
    cell = study.run().of(name, "c")[0]
    case = cases_of(1, silos.split(test=0.5, seed=1), [2], "all", LOGISTIC, 5)[0]
    by_hand = [score_by_hand(case, study, name, g, RECIPES[name].replace(lr=lr)) for g, lr in enumerate(rates)]
    np.testing.assert_allclose(cell.tried[:, -1], by_hand, rtol=1e-4)
    assert cell.hyper[0]["lr"] == rates[int(np.argmin(by_hand))]
    np.testing.assert_allclose(cell.score[0], min(by_hand), rtol=1e-4)


def test_test_rows_take_no_part_in_tuning():
    silos = small_silos().split(test=0.5, seed=0)
    flipped = cf.Silos(
        tuple(replace(s, y=np.where(s.part == 2, 1 - s.y, s.y)) for s in silos.silos), silos.feature_names
    )
    options = {"users": ["a"], "seeds": 2, "rounds": 5, "grid": {"lr": [0.1, 1, 10]}, "others": "train"}
    options |= {"metrics": ["accuracy"], "baselines": False}
    one, two = (cf.Study(s, LOGISTIC, [cf.fedsgd], **options).run().of("fedsgd", "a") for s in (silos, flipped))
    for a, b in zip(one, two, strict=True):
        assert a.hyper == b.hyper
        assert a.round == b.round
        assert np.array_equal(a.tried, b.tried)
        assert abs(a.value("accuracy") + b.value("accuracy") - 1) < 1e-6


def test_the_best_model_is_the_candidate_and_round_with_the_lowest_score():
    study = cf.Study(
        small_silos(), LOGISTIC, [cf.local], users=["a"], seeds=1, rounds=12, metrics=LOSS, grid={"lr": [0.1, 5, 30]}
    )
    cell = study.run().of("local", "a")[0]
    candidate, before = np.unravel_index(np.argmin(cell.tried[:, 1:]), cell.tried[:, 1:].shape)
    assert cell.round == (12, before + 1)
    assert cell.hyper[1]["lr"] == (0.1, 5, 30)[candidate]
    assert cell.value("log_loss", "best") == cell.curves["log_loss"][1, before + 1]


def test_folds_hold_out_every_training_row_once_and_each_class_evenly():
    silos = small_silos((60, 20, 20)).split(test=0.5, seed=2)
    case = cases_of(2, silos, [0], "all", LOGISTIC, 5)[0]
    folds = cross_folds(case, LOGISTIC, 5)
    y = silos[0].rows("train")[1]
    held = [np.setdiff1d(np.arange(30), folds.order[j, : folds.kept[j]]) for j in range(5)]
    assert sorted(np.concatenate(held)) == list(range(30))
    ones = [int(y[rows].sum()) for rows in held]
    assert max(ones) - min(ones) <= 1
    assert folds.count.tolist() == [6] * 5


def test_a_score_that_is_not_finite_is_never_chosen_unless_all_are():
    scores = np.array([[1.0, 0.5, np.nan], [1.0, 0.9, 0.8], [1.0, np.inf, np.inf]])
    assert choose(scores, "log_loss") == (1, 0, 1)
    assert choose(np.full((2, 4), np.nan), "log_loss") == (0, 0, 3)
    assert choose(np.array([[0.9, 0.2, 0.3], [0.1, 0.3, 0.2]]), "accuracy") == (0, 0, 2)


def test_fold_scores_weigh_folds_by_rows_and_average_squares():
    curves = np.array([[[1.0, 3.0]], [[2.0, 5.0]]])
    np.testing.assert_allclose(fold_scores(curves, np.array([3, 1]), "log_loss"), [[1.25, 3.5]])
    np.testing.assert_allclose(fold_scores(curves, np.array([3, 1]), "rmse"), [[np.sqrt(7 / 4), np.sqrt(13)]])
    empty = np.array([[[1.0, 3.0]], [[np.nan, np.nan]]])
    np.testing.assert_allclose(fold_scores(empty, np.array([3, 0]), "log_loss"), [[1.0, 3.0]])


def test_a_diverging_learning_rate_is_not_chosen():
    rng = np.random.default_rng(0)
    pairs = [(X, X @ [1.0, -1.0]) for X in rng.normal(size=(2, 30, 2))]
    silos = cf.Silos.from_arrays(pairs)
    grid = {"lr": [1e6, 0.3]}
    both = [cf.local, cf.fedsgd]
    study = cf.Study(silos, cf.models.linear(), both, seeds=2, rounds=200, grid=grid, baselines=False)
    result = study.run()
    assert {c.hyper[0]["lr"] for c in result.cells_} == {0.3}
    assert not np.isfinite(result.cells_[0].tried[0, -1])
    assert max(c.value("rmse") for c in result.cells_) < 1e-3


def test_a_user_with_few_rows_or_one_class_is_tuned_all_the_same():
    rng = np.random.default_rng(1)
    few = (rng.normal(size=(3, 2)), [0, 1, 1])
    same = (rng.normal(size=(12, 2)), np.ones(12, int))
    alone = (rng.normal(size=(2, 2)), [0, 1])
    rest = (rng.normal(size=(30, 2)), rng.integers(0, 2, 30))
    silos = cf.Silos.from_arrays([few, same, alone, rest], names=["few", "same", "alone", "rest"])
    result = cf.Study(
        silos, LOGISTIC, [cf.local, cf.weight_erosion], seeds=2, rounds=4, grid={"lr": [0.1, 1]}, metrics=LOSS
    ).run()
    assert all(np.isfinite(c.value("log_loss")) and np.isfinite(c.tried).all() for c in result.cells_)
    assert min(c.train_rows for c in result.cells_) == 1


def test_all_leaves_out_silos_without_test_rows_and_a_named_one_is_refused():
    silos = small_silos().split(test=0.5, seed=0)
    silos = silos.with_parts([np.zeros_like(s.part) if s.name == "b" else s.part for s in silos.silos])
    with pytest.warns(UserWarning, match="b"):
        result = cf.Study(silos, LOGISTIC, [cf.local(lr=0.1)], seeds=1, rounds=2, metrics=LOSS).run()
    assert result.users == ("a", "c")
    assert result.config["left_out"] == ["b"]
    with pytest.raises(ValueError, match="'b' has no test rows"):
        cf.Study(silos, LOGISTIC, [cf.local(lr=0.1)], users=["b"], seeds=1, rounds=2).run()


def test_where_there_are_test_rows_they_stay_and_seeds_change_the_start_only():
    silos = small_silos().split(test=0.3, seed=7)
    seen = list(seeded_silos(silos, [0, 1]))
    assert all(s is silos for _, s in seen)
    result = cf.Study(silos, LOGISTIC, [cf.local(lr=0.1)], users=["a"], seeds=2, rounds=2, metrics=LOSS).run()
    assert result.config["intervals"] == "plain"
    one, two = result.of("local", "a")
    assert one.test_rows == two.test_rows == silos.sizes("test")[0]
    assert one.curves["log_loss"][0, 0] != two.curves["log_loss"][0, 0]


def test_seeds_without_test_rows_split_in_halves():
    silos = small_silos()
    for seed, made in seeded_silos(silos, [4]):
        wanted = silos.split(test=0.5, seed=seed)
        assert all(np.array_equal(a.part, b.part) for a, b in zip(made.silos, wanted.silos, strict=True))
    assert (
        cf.Study(silos, LOGISTIC, [cf.local(lr=1)], seeds=1, rounds=1, metrics=LOSS).run().config["intervals"]
        == "resplit"
    )


def test_shared_batches_are_the_same_for_all_experiments_of_a_seed():
    silos = small_silos()
    recipes = {"one": RECIPES["fedsgd"], "two": RECIPES["fedsgd"]}
    options = {"users": ["a"], "seeds": 1, "rounds": 5, "tune": None, "baselines": False, "metrics": LOSS}
    shared = cf.Study(silos, LOGISTIC, recipes, shared_batches=True, **options).run()
    fresh = cf.Study(silos, LOGISTIC, recipes, **options).run()
    one, two = (shared.of(name, "a")[0].curves["log_loss"] for name in recipes)
    assert np.array_equal(one, two)
    one, two = (fresh.of(name, "a")[0].curves["log_loss"] for name in recipes)
    assert not np.array_equal(one, two)
    assert one[0, 0] == two[0, 0]  # the start is common


def test_a_multilayer_model_and_its_tuning_run_end_to_end():
    result = cf.Study(
        small_silos(), cf.models.mlp([4]), [cf.local, cf.weight_erosion], users=["a", "c"], seeds=2, rounds=4,
        grid={"lr": [0.1, 1], "weight_erosion": {"p_d": [0.01, 0.1]}}, metrics=LOSS,
    ).run()  # fmt: skip
    assert result.of("weight_erosion", "a")[0].tried.shape == (4, 5)
    assert set(result.cells().columns) >= {"lr", "p_d"}


def test_a_regression_learns_what_a_ridge_would():
    rng = np.random.default_rng(3)
    pairs = [(X, X @ [2.0, -1.0, 0.5] + 0.1 * rng.normal(size=60)) for X in rng.normal(size=(3, 60, 3))]
    result = cf.Study(cf.Silos.from_arrays(pairs), cf.models.linear(), [cf.local, cf.fedsgd], seeds=3, rounds=40).run()
    table = result.table(by="all")
    assert table["metric"].to_list() == ["rmse"] * len(table)
    assert max(table["mean"]) < 0.13


def test_a_network_on_amounts_is_measured_in_their_own_units():
    rng = np.random.default_rng(1)
    rows = [(X, X[:, 0] ** 2 + 0.1 * rng.normal(size=40)) for X in rng.normal(size=(2, 40, 2))]
    errors = []
    for centre, spread in ((0, 1), (300, 50)):
        silos = cf.Silos.from_arrays([(X, centre + spread * y) for X, y in rows], names=["a", "b"])
        model = cf.models.mlp([4], "regression")
        study = cf.Study(silos, model, [cf.fedsgd], ["a"], [0], {"lr": [0.1, 0.3]}, rounds=10, folds=2)
        [cell] = study.run().cells_
        errors.append(np.append(cell.curves["rmse"].ravel(), cell.score))
    np.testing.assert_allclose(errors[1], 50 * errors[0], rtol=1e-3)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([np.full(6, 37.7), np.full(6, 37.7)], (37.7, 37.7)),  # constant up to rounding
        ([np.zeros(6), np.zeros(6)], (0.0, 1.0)),
        ([np.full(6, 10.0), np.full(6, 20.0), np.full(4, 1e6)], (15.0, 5.0)),  # a handful of rows says nothing
        ([np.ones(2)], (0.0, 1.0)),
    ],
)
def test_units_are_those_of_all_silos_with_enough_rows(labels, expected):
    silos = cf.Silos.from_arrays([(np.zeros((len(y), 1)), y) for y in labels])
    network = cf.models.mlp([2], "regression")
    assert tuple(units_of(silos, network)) == pytest.approx(expected)
    assert tuple(units_of(silos, cf.models.linear())) == (0.0, 1.0)
    assert [entry.silo for entry in told_of_labels(silos, network)] == [
        name for name, y in zip(silos.names, labels, strict=True) if len(y) >= 5
    ]


def test_what_is_lost_when_a_study_is_cut_off_shrinks_with_the_work_of_a_case():
    study = cf.Study(small_silos(), cf.models.mlp([32]), [cf.fedavg], seeds=1)
    [fedavg] = study.contenders
    of = lambda rows: piece_size(study.settings, fedavg, Shape(4, rows, 8, 8, 32, 2))  # noqa: E731
    assert of(1) == MOST_CASES
    assert MOST_CASES > of(16) > of(100_000) == len(jax.local_devices())


def test_rows_are_rounded_up_by_an_eighth_at_most():
    for rows in range(1, 5000):
        padded = round_up(rows)
        assert padded % 16 == 0
        assert rows <= padded <= max(16, rows + max(15, rows // 8))


def test_progress_counts_every_experiment():
    seen = []
    study = cf.Study(
        small_silos(), LOGISTIC, [cf.local], seeds=2, rounds=2, grid={"lr": [0.1, 1]}, baselines=False, metrics=LOSS
    )
    study.run(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3 * 2 * 12, 3 * 2 * 12)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_study_warns_about_nothing_and_leaves_jax_as_it_was():
    before = len(jax.devices())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.Study(small_silos(), LOGISTIC, [cf.local(lr=0.1)], seeds=1, rounds=1, metrics=LOSS).run()
    assert len(jax.devices()) == before


@pytest.mark.parametrize("side_by_side", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_function_over_rows_is_the_function_of_each(rows, side_by_side):
    X, y = np.arange(2.0 * rows).reshape(rows, 2), np.arange(float(rows))
    found = over(lambda x, y: {"sum": x + y}, side_by_side)(X, y)
    np.testing.assert_array_equal(found["sum"], X + y[:, None])


def test_a_single_row_is_not_batched():
    one = str(jax.make_jaxpr(over(lambda x: x @ x, side_by_side=True))(np.ones((1, 3))))
    assert "dimension_numbers=(([0], [0]), ([], []))" in one

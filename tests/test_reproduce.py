"""The Weight Erosion paper again: the authors' own run, and its table over seeds."""

import shutil

import numpy as np
import pytest

from confrere.data.fetch import DataNotFound
from confrere.reproduce import runs
from confrere.reproduce import weight_erosion as paper
from confrere.reproduce.attractor import attractor, regression_silos
from confrere.reproduce.published import batch_mean_accuracy, fold_rows

# The authors' notebook, seed 278, age-strict: distances and weights of the others, users 0 and 1.
FIRST_DISTANCE = {0: [0.81650, 0.91608, 1.39239], 1: [0.58378, 0.48740, 0.74984]}
LAST_DISTANCE = {0: [4.1643, 5.9769, 2.7765], 1: [3.6911, 2.1907, 1.7117]}
FIRST_ALPHA = {0: [0.991835, 0.990839, 0.986076], 1: [0.994162, 0.995126, 0.992502]}
ALPHA_10 = {0: [0.8236, 0.7933, 0.7380], 1: [0.7818, 0.8486, 0.7536]}
ALPHA_20 = {0: [0.4535, 0.3547, 0.2862], 1: [0.3202, 0.5702, 0.3475]}
LAST_ALPHA = {0: [0, 0, 0], 1: [0, 0.04692, 0]}
ACCURACY = {
    0: {"weight_erosion": 0.784, "local": 0.720, "fedavg": 0.752, "fedavg_as_published": 0.672},
    1: {"weight_erosion": 0.770, "local": 0.762, "fedavg": 0.762, "fedavg_as_published": 0.607},
}
BATCH_MEAN = {
    0: {"weight_erosion": 0.784, "local": 0.720, "fedavg_as_published": 0.672},
    1: {"weight_erosion": 0.780, "local": 0.783, "fedavg_as_published": 0.606},
}
# Mean accuracies over 100 seeds, measured with an independent program: FedAvg, Weight Erosion, Local.
MEANS = {
    "age-strict/0": (0.725, 0.741, 0.730), "age-strict/1": (0.788, 0.784, 0.779), "age-strict/2": (0.818, 0.809, 0.807),
    "age-strict/3": (0.767, 0.779, 0.786), "age-some/0": (0.762, 0.759, 0.750), "age-some/1": (0.761, 0.763, 0.755),
    "age-some/2": (0.813, 0.803, 0.780), "age-some/3": (0.770, 0.776, 0.786),
}  # fmt: skip


@pytest.fixture(scope="module")
def authors_run(shared_data):
    silos, results = paper.single_run("age-strict", paper.AUTHORS_SEED)
    return silos, results, paper.single_run_report("age-strict", paper.AUTHORS_SEED, results)


@pytest.mark.parametrize("user", [0, 1])
def test_the_authors_run_has_their_distances_and_weights(authors_run, user):
    row = authors_run[2]["users"][str(user)]
    distance, alpha = np.array(row["distance"]), np.array(row["alpha"])
    assert distance.shape == alpha.shape == (30, 3)
    np.testing.assert_allclose(distance[0], FIRST_DISTANCE[user], atol=6e-6)
    np.testing.assert_allclose(distance[-1], LAST_DISTANCE[user], atol=6e-5)
    np.testing.assert_allclose(alpha[0], FIRST_ALPHA[user], atol=6e-7)
    np.testing.assert_allclose(alpha[9], ALPHA_10[user], atol=6e-5)
    np.testing.assert_allclose(alpha[19], ALPHA_20[user], atol=6e-5)
    np.testing.assert_allclose(alpha[-1], LAST_ALPHA[user], atol=6e-6)


@pytest.mark.parametrize("user", [0, 1])
def test_the_authors_run_has_their_accuracies_by_rows_and_by_batches(authors_run, user):
    row = authors_run[2]["users"][str(user)]
    for name, value in ACCURACY[user].items():
        assert row["accuracy"][name] == pytest.approx(value, abs=1e-3)
    for name, value in BATCH_MEAN[user].items():
        assert row["accuracy_batch_mean"][name] == pytest.approx(value, abs=1e-3)


def test_the_published_figure_of_over_90_per_cent_is_an_artefact_of_batches(authors_run):
    row = authors_run[2]["users"]["2"]
    assert row["accuracy_batch_mean"]["weight_erosion"] == pytest.approx(0.922, abs=1e-3)
    assert row["accuracy"]["weight_erosion"] == pytest.approx(0.846, abs=1e-3)
    assert row["accuracy_batch_mean"]["fedavg_as_published"] == pytest.approx(0.298, abs=1e-3)


def test_the_authors_run_ends_with_their_parameters(authors_run):
    params = authors_run[1]["weight_erosion"].params
    np.testing.assert_allclose(params["b"][0], [0.747378, -0.747378], atol=2e-6)
    rows = [[-0.337868, -0.247648], [-0.767471, 0.653109], [-0.318526, 0.336744]]
    np.testing.assert_allclose(params["w"][0][:3], rows, atol=2e-6)


def test_only_decay_moves_the_sum_of_the_two_columns(authors_run):
    start = paper.authors_start("age-strict")[1]
    expected = np.asarray(start["w"]).sum(axis=1) * 0.997**30
    found = authors_run[1]["weight_erosion"].params["w"][0].sum(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_twins_keep_the_highest_weight_in_each_others_model(shared_data):
    report = paper.single_run_report("age-some", 278, paper.single_run("age-some", 278)[1])
    alpha = {u: np.array(row["alpha"]).sum(axis=0) for u, row in report["users"].items()}
    assert alpha["0"].argmax() == 0
    assert alpha["1"].argmax() == 0


def test_without_the_authors_files_their_run_says_what_is_missing(monkeypatch):
    monkeypatch.delenv("CONFRERE_DATA", raising=False)
    with pytest.raises(DataNotFound, match=r"CONFRERE_DATA.*titanic_tfds_order\.csv.*titanic_init_seed278\.csv"):
        paper.authors_start("age-strict")


@pytest.fixture(scope="module")
def twenty_seeds():
    return paper.cells_report(paper.many_seeds(("age-strict", "age-some"), 20, at_once=20))


@pytest.mark.parametrize("cell", MEANS)
def test_means_over_twenty_seeds_are_those_of_the_independent_program(twenty_seeds, cell):
    row = twenty_seeds["cells"][cell]
    for name, value in zip(("fedavg", "weight_erosion", "local"), MEANS[cell], strict=True):
        assert row[name]["mean"] == pytest.approx(value, abs=0.025)


def test_four_users_and_many_seeds_are_one_program(twenty_seeds):
    batch = paper.experiments(list(paper.seeded_start("age-strict", range(5))), range(5))
    recipe = paper.recipes(161)["weight_erosion"]
    paper.run(recipe, batch)
    programs = runs._run._cache_size()
    paper.run(recipe.replace(lr=0.7, p_d=0.02), batch)
    assert runs._run._cache_size() == programs
    assert batch.user.tolist() == [0, 1, 2, 3] * 5


def test_a_stacked_run_is_the_run_by_itself():
    import confrere as cf

    starts = list(paper.seeded_start("age-strict", [3]))
    stacked = paper.run(paper.recipes(161)["weight_erosion"], paper.experiments(starts, [3]))
    silos, params = starts[0]
    recipe = paper.recipes(161)["weight_erosion"].replace(user=2)
    single = cf.simulate(recipe, cf.models.logistic(), silos.for_user(2), 30, seed=3, params=params)
    np.testing.assert_allclose(stacked.alpha[2], single.weights[:, 0], atol=1e-5)
    np.testing.assert_allclose(stacked.accuracy[2], single.metrics["accuracy"], atol=1e-6)


def test_a_huge_penalty_is_local_training_for_every_user_in_the_stacked_program(twenty_seeds):
    batch = paper.experiments(list(paper.seeded_start("age-strict", range(5))), range(5))
    recipes = paper.recipes(161)
    eroded = paper.run(recipes["weight_erosion"].replace(p_d=1e9), batch)
    alone = paper.run(recipes["local"], batch)
    everybody, first = np.arange(len(batch.user)), eroded.alpha[:, 0]
    assert (eroded.alpha[everybody, :, batch.user] == 1).all()
    assert first.sum() == len(batch.user)  # the others were gone after round 1
    np.testing.assert_allclose(eroded.params["w"], alone.params["w"], atol=1e-5)


def test_four_users_and_a_hundred_seeds_run_at_once():
    batch = paper.experiments(list(paper.seeded_start("age-strict", range(100))), range(100))
    result = paper.run(paper.recipes(161)["weight_erosion"], batch)
    assert result.accuracy.shape == (400, 31)
    assert np.isfinite(result.alpha).all()


def test_a_table_that_was_tampered_with_is_refused(shared_data, tmp_path, monkeypatch):
    folder = tmp_path / "titanic"
    shutil.copytree(shared_data / "titanic", folder)
    text = (folder / "titanic3.csv").read_text(encoding="utf-8")
    (folder / "titanic3.csv").write_text(text.replace("female", "male", 3), encoding="utf-8")
    monkeypatch.setenv("CONFRERE_DATA", str(tmp_path))
    with pytest.raises(DataNotFound, match="not the expected file"):
        paper.authors_start("age-strict")


def test_folding_rows_is_what_python_sum_does():
    one, two = np.arange(6.0).reshape(3, 2), np.ones((3, 2))
    np.testing.assert_array_equal(fold_rows(one, two), sum(one, two))


def test_batch_means_let_one_row_count_for_half():
    correct = np.array([True] * 8 + [False])
    assert batch_mean_accuracy(correct, 8) == 0.5


def test_left_alone_weight_erosion_ends_as_local_training_and_the_cone_stops_it():
    report = attractor(seeds=3)
    for row in report["regression"]:
        assert row["from_local"]["to_the_end"] < 1e-3
        assert row["stopped"]
        assert row["from_local"]["cone"] > 0.3
    mean = lambda name: np.mean([row["rmse"][name] for row in report["regression"]])  # noqa: E731
    assert mean("cone") < mean("to_the_end")
    assert report["titanic"]["from_local"]["to_the_end"] < 1e-2
    assert not report["titanic"]["stopped"]  # four independent gradients always fit in a cone


def test_the_users_test_rows_follow_the_law_of_its_training_rows():
    silos = regression_silos(0)
    assert silos.sizes("train")[0] == 12
    assert silos.sizes("test")[0] == 2000

"""Synthetic Ebola patients: the known numbers come back, everything says that it is synthetic, and the figures."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import confrere as cf
from confrere.data import ebola as source
from confrere.reproduce import ebola as study
from tests.test_cli import confrere

# As printed by the authors' program.
COEFFICIENTS = {
    "quarantine": 1.82, "quarantine_missing": 0.354, "conjunctivitis": 1.397, "diarrhea": 1.049,
    "referral(4-9)": 1.082, "pyrexia": 0.377, "dysphagia": 0.56,
}  # fmt: skip


@pytest.fixture(scope="module")
def many():
    """Ages, features by name and labels of very many invented patients."""
    age, X, y = source.patients(200_000, np.random.default_rng(0))
    return age, dict(zip(source.FEATURES, X.T, strict=True)), y


def test_features_come_in_the_reports_order():
    assert cf.data.ebola_synthetic().feature_names == (
        "quarantine", "quarantine_missing", "conjunctivitis", "diarrhea", "referral(4-9)", "pyrexia", "dysphagia",
        "hemorrhage", "myalgia",
    )  # fmt: skip


def test_the_rate_of_infection_is_that_of_the_table(many):
    assert many[2].mean() == pytest.approx(158 / 575, abs=0.005)
    positives = [sum(s.y.sum() for s in cf.data.ebola_synthetic(seed=seed).silos) for seed in range(30)]
    assert np.mean(positives) == pytest.approx(158, abs=6)


def test_logistic_regression_recovers_the_coefficients(many):
    _, features, y = many
    fit = LogisticRegression(C=1e6, max_iter=1000).fit(np.stack(list(features.values()), axis=1), y)
    assert fit.intercept_[0] == pytest.approx(-2.828, abs=0.05)
    found = dict(zip(source.FEATURES, fit.coef_[0], strict=True))
    for name, value in COEFFICIENTS.items():
        assert found[name] == pytest.approx(value, abs=0.1), name
    assert abs(found["hemorrhage"]) < 0.1
    assert abs(found["myalgia"]) < 0.05


def test_the_known_prevalences_and_missing_values_come_back(many):
    _, features, _ = many
    assert features["quarantine"].mean() == pytest.approx(136 / 575, abs=0.005)
    assert features["quarantine_missing"].mean() == pytest.approx(24 / 575, abs=0.003)
    assert not (features["quarantine"] * features["quarantine_missing"]).any()
    referral = features["referral(4-9)"]
    filled = (referral > 0) & (referral < 1)
    assert filled.mean() == pytest.approx(87 / 575, abs=0.005)
    assert referral[~filled].mean() == pytest.approx(0.364754, abs=0.005)
    np.testing.assert_allclose(referral[filled], referral[~filled].mean())


def test_the_middle_group_is_infected_less_and_meets_fewer_cases(many):
    age, features, y = many
    groups = [age <= 20, (age > 20) & (age <= 40), age > 40]
    rates, contacts = ([values[g].mean() for g in groups] for values in (y, features["quarantine"]))
    assert rates[1] < 0.25 < min(rates[0], rates[2])
    assert contacts[1] < 0.1 < min(contacts[0], contacts[2])


@pytest.mark.parametrize(
    ("split", "names"), [("age-strict", ["0-20", "21-40", "41+"]), ("age-some", ["0-40 a", "0-40 b", "41+"])]
)
def test_everything_says_that_it_is_synthetic(split, names):
    silos = cf.data.ebola_synthetic(split, seed=4)
    assert silos.kind == "synthetic"
    assert silos.origin.startswith("synthetic")
    assert silos.names == tuple(f"{name} (synthetic)" for name in names)
    again = silos.divide(cf.data.splits.iid(2))
    assert (again.kind, again.origin.split()[0]) == ("synthetic", "synthetic")


@pytest.mark.parametrize("split", ["age-strict", "age-some"])
@pytest.mark.parametrize("seed", [0, 278])
def test_a_user_trains_on_one_batch_and_the_others_on_two(split, seed):
    silos = cf.data.ebola_synthetic(split, seed)
    sizes = [len(s.y) for s in silos.silos]
    assert sum(sizes) == 575
    assert all(125 < size <= 250 for size in sizes)
    assert max(silos.sizes("train")) <= 125
    assert silos.sizes("test") == tuple(1 + size // 2 for size in sizes)


def test_twins_are_drawn_from_one_population_and_age_groups_are_not():
    strict = [np.mean([cf.data.ebola_synthetic("age-strict", s)[i].X[:, 0].mean() for s in range(10)]) for i in (0, 1)]
    some = [np.mean([cf.data.ebola_synthetic("age-some", s)[i].X[:, 0].mean() for s in range(10)]) for i in (0, 1)]
    assert strict[0] - strict[1] > 0.2
    assert abs(some[0] - some[1]) < 0.05


def test_patients_depend_on_the_seed_alone():
    one, two, other = (cf.data.ebola_synthetic(seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(one[0].X, two[0].X)
    assert not np.array_equal(one[0].X, other[0].X)


def test_any_number_of_rows_and_what_is_refused():
    assert sum(len(s.y) for s in cf.data.ebola_synthetic(rows=3000).silos) == 3000
    with pytest.raises(ValueError, match="age-strict, age-some, not 'iid'"):
        cf.data.ebola_synthetic("iid")
    with pytest.raises(ValueError, match="rows must be 10 or more"):
        cf.data.ebola_synthetic(rows=9)


# The figures


@pytest.fixture(scope="module")
def figure_1():
    return study.run_split("age-strict", 278)


def test_the_schemes_run_at_half_the_learning_rates_of_the_legends(figure_1):
    """One round of Global and of Local by hand: a step down the mean gradient of the first batch, from one start."""
    import jax

    params = cf.models.logistic().init(jax.random.key(278), 9, 2)
    silos = figure_1.silos.for_user(0)

    def gradient(i):
        X, y = (a[:125] for a in silos[i].rows("train"))
        scores = X @ np.asarray(params["w"]) + np.asarray(params["b"])
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = p / p.sum(axis=1, keepdims=True) - np.eye(2)[y]
        decay = 2e-3 * np.asarray(params["w"]), 2e-3 * np.asarray(params["b"])
        return X.T @ error / len(y) + decay[0], error.mean(axis=0) + decay[1]

    def accuracy(lr, gradients):
        w, b = (np.asarray(params[k]) - lr * np.mean([g[j] for g in gradients], axis=0) for j, k in enumerate("wb"))
        X, y = silos[0].rows("test")
        return np.mean((X @ w + b).argmax(axis=1) == y)

    assert figure_1.results["local"].accuracy[0, 1] == pytest.approx(accuracy(1.5, [gradient(0)]), abs=1e-6)
    everybody = [gradient(i) for i in range(3)]
    assert figure_1.results["fedavg"].accuracy[0, 1] == pytest.approx(accuracy(0.15, everybody), abs=1e-6)


def test_the_report_says_synthetic_and_has_every_user(figure_1):
    report = study.split_report(figure_1)
    assert report["data"].startswith("SYNTHETIC")
    assert report["origin"].startswith("synthetic")
    assert (report["figure"], report["rounds"], list(report["users"])) == (1, 30, ["0", "1", "2"])
    for user, row in report["users"].items():
        assert row["others"] == [i for i in range(3) if str(i) != user]
        alpha = np.array(row["alpha"])
        assert alpha.shape == (30, 2)
        assert (np.diff(alpha, axis=0) <= 1e-7).all()  # weights only erode
        majority = max(np.mean(figure_1.silos[int(user)].rows("test")[1] == label) for label in (0, 1))
        assert row["accuracy"]["local"] >= majority - 0.1


def test_the_command_draws_both_figures_on_a_page_that_says_synthetic(tmp_path):
    done = confrere("reproduce", "ebola", "--quiet", "--out", "figures", without_data=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("SYNTHETIC") == 2
    written = sorted(path.name for path in (tmp_path / "figures").iterdir())
    assert written == [
        "ebola-synthetic-278.html",
        "ebola-synthetic-figure1-age-strict-278.png",
        "ebola-synthetic-figure2-age-some-278.png",
    ]
    page = (tmp_path / "figures" / "ebola-synthetic-278.html").read_text(encoding="utf-8")
    for words in ("<h1>Weight Erosion on SYNTHETIC", "<h2>Figure 1: SYNTHETIC", "<h2>Figure 2: SYNTHETIC", "lr 0.3"):
        assert words in page
    assert 'src="http' not in page


def test_the_command_prints_one_json_object_and_draws_nothing_unless_asked(tmp_path, figure_1):
    done = confrere("reproduce", "ebola", "--split", "age-strict", "--json", without_data=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["data"], report["seed"], list(report["splits"])) == ("synthetic", 278, ["age-strict"])
    row = report["splits"]["age-strict"]
    rates = row["learning_rates"]
    assert (rates["fedavg"], rates["weight_erosion"], rates["local"]) == (0.3, 3.0, 3.0)
    np.testing.assert_allclose(
        row["users"]["2"]["alpha"], figure_1.results["weight_erosion"].alpha[2][:, :2], atol=1e-5
    )
    assert list(tmp_path.iterdir()) == []


def test_a_drawn_panel_shows_accuracies_baselines_and_dotted_weights(figure_1):
    import matplotlib.pyplot as plt

    from confrere.reproduce.ebola_figures import png_figure

    figure = png_figure(figure_1)
    assert "SYNTHETIC" in figure.get_suptitle()
    panels = figure.axes
    assert len(panels) == 3
    for user, axis in enumerate(panels):
        lines = {line.get_label(): line for line in axis.get_lines() if len(line.get_xdata()) > 2}
        for label, scheme in (("Global (lr 0.3)", "fedavg"), ("Weight Erosion (lr 3)", "weight_erosion"),
                              ("Local (lr 3)", "local")):  # fmt: skip
            np.testing.assert_allclose(lines[label].get_ydata(), figure_1.results[scheme].accuracy[user])
            assert lines[label].get_linestyle() == "-"
        dotted = [line for label, line in lines.items() if label.startswith("silo")]
        assert [line.get_linestyle() for line in dotted] == [":", ":"]
        share = figure_1.silos[user].rows("test")[1].mean()
        dashed = [line.get_ydata()[0] for line in axis.get_lines() if line.get_linestyle() == "--"]
        np.testing.assert_allclose(sorted(dashed), sorted([share, 1 - share]))
    plt.close(figure)

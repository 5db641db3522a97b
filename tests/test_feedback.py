"""Feedback that rests on models: rows that hurt, wrong labels, what others are told, what to record next."""

import json
from dataclasses import replace

import jax
import numpy as np
import polars as pl
import pytest

import confrere as cf
from confrere.insight.quality.balancing import balanced
from confrere.insight.quality.fits import FOLDS, foldings
from confrere.insight.quality.next_feature import Gain, together, weighted_gain
from confrere.insight.quality.own import own_rows
from confrere.insight.quality.rows import influences
from tests.feedback_problems import silos_of, table


def labelled(seed, rows=300, slope=4.0, wrong=0.05, features=5):
    """One silo with wrong labels, and which they are."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    y = (slope * X.sum(axis=1) + rng.logistic(size=rows) > 0).astype(int)
    flipped = rng.random(rows) < wrong
    return cf.Silos.from_arrays([(X, np.where(flipped, 1 - y, y))]), flipped


def newton(X, y, l2, steps=60):
    """A numpy logistic regression with the project's penalty: l2 on coefficients, a tenth on the intercept."""
    A = l2 * np.r_[np.ones(X.shape[1] - 1), 0.1]
    theta = np.zeros(X.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-X @ theta))
        H = (X * (p * (1 - p))[:, None]).T @ X / len(y) + np.diag(A)
        theta -= np.linalg.solve(H, X.T @ (p - y) / len(y) + A * theta)
    return theta


def test_the_influence_of_rows_is_that_of_exact_retraining():
    silos, _ = labelled(0, rows=60, slope=1.0, features=2)
    with jax.enable_x64(True):
        own = own_rows(silos, 0, 0.05, "test")
        phi = influences(own.rows, own.y, own.task.penalty, own.task.task, 0)
        fold = foldings(own.y, own.rows.y.shape[0], 0, repeats=1)[0][:60]
    X = np.column_stack([silos[0].X, np.ones(60)])
    y, pairs = silos[0].y, []

    def losses(theta, rows):
        return np.logaddexp(0, np.where(y[rows] == 1, -1, 1) * (X[rows] @ theta))

    for k in range(FOLDS):
        kept, tested = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        base = losses(newton(X[kept], y[kept], 0.05), tested)
        for r in kept:
            rest = kept[kept != r]
            held = 0.05 * len(kept) / len(rest)  # the penalty stays what it was
            pairs.append((losses(newton(X[rest], y[rest], held), tested).mean() - base.mean(), phi[tested, r].mean()))
    exact, first_order = np.array(pairs).T
    assert np.corrcoef(exact, first_order)[0, 1] > 0.99
    assert np.abs(exact - first_order).max() < 0.25 * np.abs(exact).max()


def test_rows_with_planted_wrong_labels_are_the_ones_that_hurt_most():
    silos, flipped = labelled(1)
    worst = cf.insight.harmful_rows(silos, 0, most=10)
    assert sum(flipped[r.row] for r in worst) >= 6  # of 10, where one in twenty is wrong
    assert all(r.low <= r.fall <= r.high for r in worst)
    assert [r.fall for r in worst] == sorted((r.fall for r in worst), reverse=True)


def test_planted_wrong_labels_are_found_with_the_precision_that_is_stated():
    hits, suspects, wrong, stated = 0, 0, 0, 0.0
    for seed in range(6):
        silos, flipped = labelled(seed)
        found = cf.insight.label_suspects(silos, 0)
        hits += sum(flipped[s.row] for s in found.found)
        suspects += len(found.found)
        wrong += flipped.sum()
        stated += found.expected
    assert hits / suspects > 0.9
    assert hits / wrong > 0.55
    assert stated / suspects == pytest.approx(hits / suspects, abs=0.12)


def test_right_labels_are_rarely_called_wrong():
    clear = [cf.insight.label_suspects(labelled(s, slope=1.0, wrong=0.0)[0], 0).clear for s in range(10)]
    assert sum(clear) <= 1


def test_rounding_does_not_change_the_suspects():
    silos, _ = labelled(0)
    near = replace(silos, source=None, silos=tuple(replace(s, X=s.X * (1 + 1e-6)) for s in silos.silos))
    one, other = (cf.insight.label_suspects(each, 0) for each in (silos, near))
    assert [s.row for s in one.found] == [s.row for s in other.found]
    assert np.log(one.chance) == pytest.approx(np.log(other.chance), abs=1e-3)


def test_a_wrong_label_is_seen_far_from_the_border_only():
    x = np.random.default_rng(0).normal(size=(200, 1))
    far, near = np.argsort(np.abs(x[:, 0]))[[-1, 0]]
    y = (x[:, 0] > 0).astype(int)
    y[[far, near]] = 1 - y[[far, near]]
    found = cf.insight.label_suspects(cf.Silos.from_arrays([(x, y)]), 0)
    assert found.clear
    assert [s.row for s in found.found] == [far]


def test_a_wrong_amount_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=100) * 0.5
    y[7] += 20
    found = cf.insight.label_suspects(cf.Silos.from_arrays([(X, y)]), 0)
    assert [s.row for s in found.found] == [7]
    assert found.clear
    assert found.share is None


def test_three_classes_are_judged_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = (4 * X @ [[1, -0.5, -0.5], [0, 0.9, -0.9]] + rng.gumbel(size=(240, 3)) * 0.3).argmax(axis=1)
    told = y.copy()
    told[:8] = (told[:8] + 1) % 3
    found = cf.insight.label_suspects(cf.Silos.from_arrays([(X, told)]), 0)
    hit = {s.row for s in found.found} & set(range(8))
    assert len(hit) >= 5
    assert found.clear


def twins(rows=150, seed=0):
    """Three silos of one law and one whose second coefficient has the other sign."""
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(4):
        X = rng.normal(size=(rows, 3))
        y = X @ [1.0, -1.5 if i == 3 else 1.5, 0.5] + rng.logistic(size=rows) > 0
        pairs.append((X, y.astype(int)))
    return cf.Silos.from_arrays(pairs, names=["a", "b", "c", "odd"], feature_names=["u", "v", "w"])


def test_a_silo_is_told_its_rank_and_the_weight_that_differs():
    told, shared = cf.insight.to_others(twins(), "a")
    by_name = {t.silo: t for t in told}
    ranking = cf.selection.ndoye(twins(), "a").ranking
    assert [t.silo for t in told] == ranking
    odd = by_name["odd"]
    assert (odd.rank, odd.of, odd.chosen) == (3, 3, False)
    assert odd.differences[0].feature == "v"
    assert odd.differences[0].clear
    assert odd.differences[0].low < -2 < odd.differences[0].high + 1
    assert {s.silo for s in shared} == {"b", "c", "odd"}


def test_silos_of_one_law_differ_within_their_intervals():
    found = [t for seed in range(4) for t in cf.insight.to_others(twins(seed=seed), "a")[0] if t.silo != "odd"]
    inside = [d.low < 0 < d.high for t in found for d in t.differences]
    assert np.mean(inside) >= 0.85  # 0.94 over 25 seeds


def test_the_interval_of_a_difference_is_about_as_wide_as_theory_says():
    told, _ = cf.insight.to_others(twins(rows=400), "a")
    [u] = [d for t in told if t.silo == "b" for d in t.differences if d.feature == "u"]
    X = np.column_stack([twins(rows=400)["a"].X, np.ones(400)])
    p = 1 / (1 + np.exp(-X @ newton(X, twins(rows=400)["a"].y, 0.01)))
    H = (X * (p * (1 - p))[:, None]).T @ X
    error = np.sqrt(2 * np.linalg.inv(H + 4 * np.eye(4))[0, 0])
    assert (u.high - u.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.35)


def test_a_silent_silo_is_told_that_it_was_left_out():
    silos = twins()
    told, _ = cf.insight.to_others(silos, "a", cf.selection.ndoye(silos, "a", silent=["c"]))
    assert (told[-1].silo, told[-1].rank, told[-1].differences) == ("c", None, ())


def with_small(sizes=(150, 150, 2, 4)):
    """Silos of one law, some of them small."""
    silos = twins()
    cut = [replace(s, X=s.X[:n], y=s.y[:n], part=s.part[:n]) for s, n in zip(silos.silos, sizes, strict=True)]
    return replace(silos, silos=tuple(cut), source=None)


def test_silos_below_the_minimum_send_nothing_and_are_told_why():
    found = cf.insight.feedback(with_small(), "a")
    assert [t.silo for t in found.to_others] == ["b", "c", "odd"]
    for told, rows in zip(found.to_others[1:], (2, 4), strict=True):
        assert (told.rank, told.score, told.differences) == (None, None, ())
        assert told.why == f"it has {rows} training rows, fewer than the minimum of 5"
    assert found.to_others[0].of == 1
    assert {entry.silo for entry in found.shared} == {"b"}
    assert "To c: you were left out: it has 2 training rows" in str(found)


def test_a_minimum_that_nobody_reaches_leaves_nothing_to_be_told():
    found = cf.insight.feedback(with_small(), "a", min_count=1000)
    assert found.shared == ()
    assert {t.rank for t in found.to_others} == {None}
    assert "told 0 numbers, none about fewer than 1000 rows" in str(found)


def test_a_selection_that_heard_small_silos_does_not_make_them_send():
    silos = with_small()
    chosen = cf.selection.ndoye(silos, "a", min_count=1)
    assert chosen.ranking != ["b"]
    told, sent = cf.insight.to_others(silos, "a", chosen)
    assert [(t.silo, t.rank, t.of) for t in told if t.rank] == [("b", 1, 1)]
    assert {entry.silo for entry in sent} == {"b"}


def test_nobody_is_told_of_a_user_below_the_minimum():
    told, sent = cf.insight.to_others(with_small((4, 150, 150, 150)), "a")
    assert {t.why for t in told} == {"a has 4 training rows, fewer than the minimum of 5"}
    assert sent == ()


def test_noise_is_said_to_be_in_columns_alone():
    found = cf.insight.feedback(twins(), "a", noise=0.5)
    assert "with noise of scale 0.5 in those of their columns alone" in str(found)


def test_a_column_that_few_know_promises_nothing():
    found, shared = cf.insight.record_next(recording(rows=100), "mine", min_count=101)
    assert found == shared == ()
    one = recording(rows=100)
    short = replace(one.silos[1], X=one.silos[1].X[:40], y=one.silos[1].y[:40], part=one.silos[1].part[:40])
    found, _ = cf.insight.record_next(replace(one, silos=(one.silos[0], short, one.silos[2]), source=None), "mine",
                                      min_count=50)  # fmt: skip
    assert all("one" not in n.silos for n in found)


def test_a_selection_for_another_user_is_refused():
    silos = twins()
    with pytest.raises(ValueError, match="made for 'b', but the feedback is for 'a': select again"):
        cf.insight.feedback(silos, "a", selection=cf.selection.ndoye(silos, "b"))
    with pytest.raises(TypeError, match=r"selection must be what e\.g\. confrere\.selection\.ndoye\(silos, 'a'\)"):
        cf.insight.feedback(silos, "a", selection="ndoye")


def test_silos_with_equal_scores_share_a_rank():
    silos = twins()
    same = replace(silos, silos=(silos.silos[0], *(replace(silos.silos[1], name=n) for n in "bcd")), source=None)
    told, _ = cf.insight.to_others(same, "a")
    assert [(t.rank, t.of, t.shared) for t in told] == [(1, 3, True)] * 3
    assert "To b: rank 1 of 3, shared, chosen" in str(cf.insight.feedback(same, "a"))


def test_balanced_weights_have_the_means_that_were_asked_for():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    aim = np.array([0.5, -0.3, 0.0])
    weight = balanced(X, aim, ridge=0.0)
    assert weight @ X / weight.sum() == pytest.approx(aim, abs=1e-6)
    assert weight.mean() == pytest.approx(1)
    assert np.allclose(balanced(X, X.mean(axis=0)), 1, atol=1e-6)


def test_random_effects_are_those_of_dersimonian_and_laird():
    z = 1.959963984540054
    values, errors = np.array([0.1, 0.4, 0.2]), np.array([0.05, 0.1, 0.08])
    w = 1 / errors**2
    Q = (w * (values - (w @ values) / w.sum()) ** 2).sum()
    tau = max(0, (Q - 2) / (w.sum() - (w**2).sum() / w.sum()))
    v = 1 / (errors**2 + tau)
    found = together([Gain(m, m - z * e, m + z * e, 50) for m, e in zip(values, errors, strict=True)])
    assert found[0] == pytest.approx((v @ values) / v.sum())
    assert found[2] - found[1] == pytest.approx(2 * z / np.sqrt(v.sum()))


def recording(seed=0, rows=300, shift=0.8, hidden=True):
    """Three hospitals of one law; the first, whose patients are older, does not record `marker`, nor `noise`."""
    rng = np.random.default_rng(seed)
    count = 3 * rows
    hospital = np.repeat(["mine", "one", "two"], rows)
    age = rng.normal(size=count) + shift * (hospital == "mine")
    marker, noise = 0.5 * age + rng.normal(size=count), rng.normal(size=count)
    ill = 0.8 * age + 1.5 * marker + rng.logistic(size=count) > 0
    gone = (hospital == "mine") & hidden
    frame = {"age": age, "marker": np.where(gone, np.nan, marker), "noise": np.where(gone, np.nan, noise), "ill": ill,
             "hospital": hospital}  # fmt: skip
    return cf.Silos.from_table(pl.DataFrame(frame, nan_to_null=True), label="ill", silo="hospital")


def true_gain(silos, feature):
    """The gain that the first hospital would have had, on its own rows."""
    with jax.enable_x64(True):
        own = own_rows(silos, "mine", 0.01, "test")
        base = np.zeros(own.rows.X.shape[1])
        base[[silos.feature_names.index("age"), -1]] = 1
        return weighted_gain(own.rows, np.asarray(own.rows.weight), base, [silos.feature_names.index(feature)],
                             own.task, 0)  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_a_hidden_column_is_estimated_as_it_would_have_been(seed):
    found, shared = cf.insight.record_next(recording(seed), "mine")
    assert [n.column for n in found] == ["marker", "noise"]
    best, useless = found
    truth = true_gain(recording(seed, hidden=False), "marker")
    assert best.low > 0
    assert max(best.low, truth.low) < min(best.high, truth.high)  # the intervals meet
    assert best.gain == pytest.approx(truth.value, abs=0.06)
    assert useless.low < 0.002
    assert {s.silo for s in shared} == {"mine", "one", "two"}


def test_the_case_mix_is_the_users_own():
    """Where the marker matters only to the old, hospitals of the young promise an old hospital what it would gain."""
    rng = np.random.default_rng(0)
    count = 900
    hospital = np.repeat(["mine", "one", "two"], 300)
    old = rng.random(count) < np.where(hospital == "mine", 0.9, 0.25)
    marker = rng.normal(size=count)
    ill = np.where(old, 2.0 * marker, 0.0) + rng.logistic(size=count) > 0
    columns = {"old": old.astype(float), "marker": marker, "both": old * marker, "ill": ill, "hospital": hospital}
    full = cf.Silos.from_table(pl.DataFrame(columns), label="ill", silo="hospital")
    lack = np.where(hospital == "mine", np.nan, columns["both"])
    masked = pl.DataFrame({**columns, "marker": 0.0 * marker + rng.normal(size=count), "both": lack}, nan_to_null=True)
    found, _ = cf.insight.record_next(cf.Silos.from_table(masked, label="ill", silo="hospital"), "mine")
    with jax.enable_x64(True):
        own = own_rows(full, "mine", 0.01, "test")
        base = np.ones(own.rows.X.shape[1])
        base[[full.feature_names.index(n) for n in ("marker", "both")]] = 0
        truth = weighted_gain(
            own.rows, np.asarray(own.rows.weight), base, [full.feature_names.index("both")], own.task, 0
        )
        other = own_rows(full, "one", 0.01, "test")
        unweighted = weighted_gain(other.rows, np.asarray(other.rows.weight), base,
                                   [full.feature_names.index("both")], own.task, 0)  # fmt: skip
    [both] = [n for n in found if n.column == "both"]
    assert abs(both.gain - truth.value) < abs(unweighted.value - truth.value)


def test_nothing_is_suggested_to_a_silo_that_records_everything():
    assert cf.insight.record_next(recording(hidden=False), "mine") == ((), ())


def test_a_silo_alone_gets_what_its_own_rows_say():
    silos, _ = labelled(1)
    found = cf.insight.feedback(silos, 0)
    assert found.to_others == found.record_next == ()
    assert "alone" in found.without[0]
    assert found.labels.clear


def test_a_silo_of_one_label_is_told_that_nothing_can_be_judged():
    silos = twins()
    first = replace(silos.silos[0], y=np.zeros(150, int))
    found = cf.insight.feedback(replace(silos, silos=(first, *silos.silos[1:])), "a")
    assert found.rows == ()
    assert found.labels.rows == 0
    assert "one label only" in found.without[0]
    assert "No sign of wrong labels" not in str(found)


def test_a_silo_of_few_rows_is_told_that_nothing_can_be_judged():
    silos = twins()
    first = replace(silos.silos[0], X=silos.silos[0].X[:7], y=silos.silos[0].y[:7], part=silos.silos[0].part[:7])
    found = cf.insight.feedback(replace(silos, silos=(first, *silos.silos[1:])), "a")
    assert found.without[0] == "rows and labels are not judged: a has 7 training rows, where it takes 8"
    assert "No sign of wrong labels" not in str(found)


@pytest.fixture(scope="module")
def whole():
    columns = table(0)
    columns["chol"][[1, 5, 7, 11, 13]] = 0
    return cf.insight.feedback(silos_of(columns), "h0")


def test_feedback_is_plain_json_with_and_without_rows(whole):
    told = json.loads(whole.to_json())
    assert told["findings"][0]["rows"] == [1, 5, 7, 11, 13]
    assert {"findings", "rows", "labels", "to_others", "record_next", "shared"} <= set(told)
    for_others = whole.to_dict(rows=False)
    assert "rows" not in for_others
    assert all("rows" not in f for f in for_others["findings"])
    assert "found" not in for_others["labels"]


def test_feedback_in_words_says_whose_it_is_and_what_was_shared(whole):
    said = str(whole)
    for words in ("What could be better in the data of h0", "chol is 0 in 5 rows of 80", "is for silo 'h0' only",
                  "none about fewer than 5 rows", "To h1: rank"):  # fmt: skip
        assert words in said

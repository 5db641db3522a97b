"""Evidence-weighted borrowing against its formulas in plain numpy, scikit-learn and closed forms."""

import functools

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from confrere.borrowing import borrow, candidates, glm, local, summary
from confrere.borrowing.glm import Quadratic, Rows
from tests import borrowing_oracle as oracle

FAMILIES = [("regression", 1), ("classification", 1), ("classification", 3)]


def rows_from(X, y, weight=None):
    X = np.asarray(X, float)
    y = np.asarray(y)
    weight = np.ones(len(y)) if weight is None else weight
    y = jnp.asarray(y, jnp.int32) if y.dtype.kind in "iub" else jnp.asarray(y, float)
    return Rows(jnp.asarray(X, float), y, jnp.asarray(weight, float))


def some_rows(task, scores, n=40, d=4, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([scale * rng.normal(size=(n, d - 1)), np.ones(n)])
    y = rng.normal(size=n) if task == "regression" else rng.integers(max(2, scores), size=n)
    return rows_from(X, y)


def two_class_rows(w, n, rng, flip=False):
    X = np.column_stack([rng.normal(size=(n, len(w) - 1)), np.ones(n)])
    y = (rng.random(n) < 1 / (1 + np.exp(-X @ w))).astype(int)
    return X, 1 - y if flip else y


def random_psd(rng, d, rank=None):
    root = rng.normal(size=(d, d if rank is None else rank))
    return root @ root.T


# --- linear models ---


@pytest.mark.parametrize(("task", "scores"), FAMILIES)
def test_derivatives_are_those_of_the_summed_loss(x64, task, scores):
    rows = some_rows(task, scores)
    rows = rows._replace(weight=jnp.linspace(0, 2, 40))
    theta = jnp.asarray(np.random.default_rng(1).normal(size=4 * scores))
    total = functools.partial(lambda t: glm.total_loss(rows, t, task))
    gradient, H = glm.derivatives(rows, theta, task)
    np.testing.assert_allclose(gradient, jax.grad(total)(theta), atol=1e-12)
    np.testing.assert_allclose(H, jax.hessian(total)(theta), atol=1e-11)
    for j in range(4 * scores):
        e = 1e-5 * np.eye(4 * scores)[j]
        assert float(gradient[j]) == pytest.approx(float(total(theta + e) - total(theta - e)) / 2e-5, abs=1e-7)


def test_the_softmax_form_of_two_scores_is_the_loss_of_scikit_learn(x64):
    from sklearn.metrics import log_loss

    rows = some_rows("classification", 3)
    theta = np.random.default_rng(2).normal(size=12)
    z = np.asarray(rows.X) @ theta.reshape(4, 3)
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    expected = log_loss(np.asarray(rows.y), p, normalize=False)
    assert float(glm.total_loss(rows, jnp.asarray(theta), "classification")) == pytest.approx(expected, rel=1e-12)


def test_the_minimum_of_two_classes_is_that_of_scikit_learn(x64):
    X, y = two_class_rows(np.array([1.0, -2.0, 0.5, 0.3]), 80, np.random.default_rng(3))
    ours = glm.minimise(rows_from(X, y), "classification", 0.7 * jnp.eye(4), jnp.zeros(4), jnp.zeros(4))
    theirs = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours, theirs.coef_[0], atol=1e-6)


def test_the_minimum_of_three_classes_is_that_of_scikit_learn(x64):
    rows = some_rows("classification", 3)
    ours = glm.minimise(rows, "classification", 0.7 * jnp.eye(12), jnp.zeros(12), jnp.zeros(12))
    theirs = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=1000).fit(rows.X, rows.y)
    np.testing.assert_allclose(np.asarray(ours).reshape(4, 3), theirs.coef_.T, atol=1e-6)


def test_the_minimum_of_least_squares_is_in_closed_form(x64):
    rows = some_rows("regression", 1)
    rng = np.random.default_rng(4)
    A, b = random_psd(rng, 4) + np.eye(4), rng.normal(size=4)
    X, y = np.asarray(rows.X), np.asarray(rows.y)
    ours = glm.minimise(rows, "regression", jnp.asarray(A), jnp.asarray(b), jnp.zeros(4))
    np.testing.assert_allclose(ours, np.linalg.solve(X.T @ X + A, X.T @ y + b), atol=1e-12)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_separable_rows_of_any_scale_have_a_finite_minimum_at_which_the_gradient_vanishes(x64, scale):
    X = np.column_stack([scale * np.linspace(-1, 1, 30), np.ones(30)])
    rows = rows_from(X, (X[:, 0] > 0).astype(int))
    A = 1e-3 * jnp.eye(2)
    theta = glm.minimise(rows, "classification", A, jnp.zeros(2), jnp.zeros(2))
    gradient = glm.derivatives(rows, theta, "classification")[0] + A @ theta
    assert np.abs(gradient / (scale + 1)).max() < 1e-8


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e5])
def test_single_precision_reaches_the_minimum_on_any_scale_of_features(scale):
    X, y = two_class_rows(np.array([1.0, -2.0, 0.5, 0.3]), 300, np.random.default_rng(3))
    X[:, 0] *= scale
    A0 = oracle.base(4)
    best = oracle.newton(X, y, A0, np.zeros(4))
    ours = glm.minimise(rows_from(X, y), "classification", jnp.asarray(A0), jnp.zeros(4), jnp.zeros(4))
    value = lambda w: oracle.loss(X, y, w, "classification").sum() + 0.5 * w @ A0 @ w  # noqa: E731
    assert value(np.asarray(ours, float)) <= value(best) + 1e-4


@pytest.mark.parametrize(("task", "scores"), FAMILIES)
def test_without_rows_the_minimum_is_that_of_the_prior(x64, task, scores):
    rows = some_rows(task, scores)
    rows = rows._replace(weight=jnp.zeros(40))
    D = 4 * scores
    b = jnp.arange(D, dtype=float)
    np.testing.assert_allclose(glm.minimise(rows, task, 2 * jnp.eye(D), b, jnp.zeros(D)), b / 2, atol=1e-12)


@pytest.mark.parametrize(("task", "scores"), FAMILIES)
def test_a_weight_of_two_is_a_row_that_is_there_twice(x64, task, scores):
    rows = some_rows(task, scores)
    twice = Rows(*(jnp.concatenate([a, a[:7]]) for a in rows))
    weighted = rows._replace(weight=rows.weight.at[:7].set(2))
    D = 4 * scores
    fit = lambda r: glm.minimise(r, task, jnp.eye(D), jnp.zeros(D), jnp.zeros(D))  # noqa: E731
    np.testing.assert_allclose(fit(twice), fit(weighted), atol=1e-9)


def test_what_overflows_leaves_the_start():
    rows = some_rows("regression", 1)
    start = jnp.arange(4.0)
    A = jnp.full((4, 4), 1e38)
    np.testing.assert_array_equal(glm.minimise(rows, "regression", A, A[0], start), start)


# --- messages and evidence ---


@pytest.mark.parametrize("rank", [4, 2, 0])
def test_what_a_silo_says_is_the_formula_also_with_singular_curvature(x64, rank):
    rng = np.random.default_rng(5)
    H, h = random_psd(rng, 4, rank) * 30, rng.normal(size=4)
    said = borrow.messages(Quadratic(jnp.asarray(H)[None], jnp.asarray(h)[None]), 1)
    for g, T in enumerate(oracle.GRID):
        P, p = oracle.message(H, h, *T)
        np.testing.assert_allclose(said.H[0, g], P, atol=1e-8)
        np.testing.assert_allclose(said.h[0, g], p, atol=1e-8)


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6, 1e12, 1e20])
def test_precision_is_capped_however_much_curvature_is_claimed(size):
    H = jnp.asarray(size * random_psd(np.random.default_rng(6), 5, 3))
    said = borrow.messages(Quadratic(H[None], jnp.ones((1, 5))), 1).H[0]
    for P, (tb, tw) in zip(np.asarray(said, float), oracle.GRID, strict=True):
        cap = 1 / np.sqrt([tw] * 4 + [tb])
        assert np.linalg.eigvalsh(P / np.outer(cap, cap)).max() <= 1 + 1e-3
        assert np.linalg.eigvalsh(P / np.outer(cap, cap)).min() >= -1e-5


def marginal(mean, covariance, H0, h0):
    """log of the user's likelihood, a normal with precision H0 around H0^-1 h0, under a normal prior."""
    centre = np.linalg.solve(H0, h0)
    return stats.multivariate_normal(mean, covariance + np.linalg.inv(H0)).logpdf(centre)


def evidence_gaps(rows, dtype):
    """Differences of log_evidence between three priors, and of the exact marginal likelihood."""
    rng = np.random.default_rng(7)
    X, y = two_class_rows(np.array([1.0, -1.0, 0.5]), rows, rng)
    w = oracle.newton(X, y, oracle.base(3), np.zeros(3))
    H0, h0 = oracle.quadratic(X, y, w)
    priors = [(oracle.base(3), np.zeros(3))]
    priors += [(oracle.base(3) + 1000 * np.eye(3), 1000 * (w + shift)) for shift in (0.0, 0.05)]
    exact = [marginal(np.linalg.solve(S, p), np.linalg.inv(S), H0, h0) for S, p in priors]
    as_ours = lambda a: jnp.asarray(a, dtype)  # noqa: E731
    own = Quadratic(as_ours(H0), as_ours(h0))
    ours = [borrow.log_evidence(Quadratic(as_ours(S), as_ours(p)), own, as_ours(w)) for S, p in priors]
    return np.diff(np.array(ours, float)), np.diff(exact)


@pytest.mark.parametrize("rows", [30, 1000, 100_000])
def test_evidence_is_the_marginal_likelihood(x64, rows):
    ours, exact = evidence_gaps(rows, jnp.float64)
    np.testing.assert_allclose(ours, exact, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("rows", [30, 1000, 100_000])
def test_evidence_keeps_its_digits_in_single_precision(rows):
    ours, exact = evidence_gaps(rows, jnp.float32)
    np.testing.assert_allclose(ours, exact, rtol=2e-3, atol=2e-2)


def test_an_impossible_message_has_no_evidence():
    rows = some_rows("classification", 1)
    prior = glm.base_precision(4, 1)
    theta = local.alone(rows, "classification", prior)[1]
    said = borrow.messages(Quadratic(jnp.eye(4)[None], jnp.full((1, 4), 1e30)), 1)
    found = borrow.pair(prior, said, glm.expand(rows, theta, "classification"), theta)
    assert float(found.relevance[0]) == 0
    assert np.isfinite(found.from_each.h).all()


# --- the whole against the oracle ---


def a_case(task="classification", n=45, d=5, seed=0):
    """The user's rows, three silos' summaries (like, less like, opposite), and the others' pooled losses."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    if task == "classification":
        X, y = two_class_rows(w, n, rng)
        tables = [two_class_rows(w + s * rng.normal(size=d), m, rng, f) for s, m, f in
                  ((0.1, 150, False), (0.6, 90, False), (0.0, 100, True))]  # fmt: skip
        silos = [oracle.summary(*table) for table in tables]
        others = [np.concatenate(part) for part in zip(*tables, strict=True)]
        centre = oracle.newton(*others, oracle.base(d), np.zeros(d))
        return X, y, silos, oracle.quadratic(*others, centre)
    draw = lambda w, m: (lambda X: (X, X @ w + rng.normal(size=m)))(  # noqa: E731
        np.column_stack([rng.normal(size=(m, d - 1)), np.ones(m)])
    )
    X, y = draw(w, n)
    tables = [draw(v, 80) for v in (w + 0.1, w + 0.8 * rng.normal(size=d), -w)]
    silos = [(A.T @ A, A.T @ b) for A, b in tables]
    return X, y, silos, tuple(sum(part) for part in zip(*silos, strict=True))


judge = jax.jit(candidates.judge, static_argnums=(1, 2, 5), compiler_options=glm.QUICK_COMPILATION)
PADDED = 60  # all cases have the same shapes, so that few programs are compiled


def ours_on(X, y, silos, pool, task, believed=(True, True, True), names=candidates.CANDIDATES):
    quadratic = Quadratic(*(jnp.asarray(np.array(part)) for part in zip(*silos, strict=True)))
    prior = glm.base_precision(X.shape[1], 1)
    problem = candidates.Problem(prior, quadratic, Quadratic(*map(jnp.asarray, pool)), jnp.array(believed))
    blank = PADDED - len(y)
    rows = rows_from(np.pad(X, ((0, blank), (0, 0))), np.pad(y, (0, blank)), np.arange(PADDED) < len(y))
    return judge(rows, task, 1, problem, jax.random.key(0), names)


def folds_of(y, task):
    padded = rows_from(np.zeros((PADDED, 1)), np.pad(y, (0, PADDED - len(y)))).y
    return np.asarray(candidates.fold_of_rows(padded, jnp.arange(PADDED) < len(y), jax.random.key(0), task))[: len(y)]


@pytest.mark.parametrize(("task", "seed"), [("classification", 0), ("classification", 1), ("regression", 0)])
def test_the_average_of_candidates_is_that_of_the_formulas(x64, task, seed):
    X, y, silos, pool = a_case(task, seed=seed)
    ours = ours_on(X, y, silos, pool, task)
    expected = oracle.verdict(X, y, silos, pool, folds_of(y, task), task)
    for name in ("theta", "weights", "scores", "relevance"):
        np.testing.assert_allclose(getattr(ours, name), expected[name], atol=1e-8, err_msg=name)
    np.testing.assert_allclose([ours.own, *ours.shares], expected["shares"], atol=1e-8)
    theta, _, _ = oracle.candidates(X, y, silos, pool, task)
    for k, name in enumerate(candidates.CANDIDATES):
        np.testing.assert_allclose(ours.each[k], theta[name], atol=1e-8, err_msg=name)
    assert np.ptp(ours.weights) > 0.1  # the candidates are not all alike


def test_single_precision_gives_the_same_answer(x64):
    X, y, silos, pool = a_case()
    double = ours_on(X, y, silos, pool, "classification")
    with jax.enable_x64(False):
        single = ours_on(X, y, silos, pool, "classification")
    np.testing.assert_allclose(single.theta, double.theta, atol=2e-3)
    np.testing.assert_allclose(single.relevance, double.relevance, atol=2e-3)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_shares_of_user_silos_and_prior_sum_to_one(x64, task):
    X, _, silos, _ = a_case(task)
    prior, H0 = np.diag(oracle.base(5)), X.T @ X / 5
    each = np.array([H / 3 for H, _ in silos])
    own, shares = borrow.information_shares(
        jnp.asarray(prior), Quadratic(jnp.asarray(H0), jnp.zeros(5)), jnp.asarray(each)
    )
    of_prior = np.trace(np.linalg.inv(np.diag(prior) + H0 + each.sum(0)) @ np.diag(prior)) / 5
    assert float(own + shares.sum()) + of_prior == pytest.approx(1, abs=1e-10)


def test_folds_are_of_equal_size_in_every_class_and_padding_has_none():
    y = jnp.asarray([0] * 23 + [1] * 11 + [0] * 6)
    live = jnp.arange(40) < 34
    fold = np.asarray(candidates.fold_of_rows(y, live, jax.random.key(0), "classification"))
    assert (fold[34:] == candidates.FOLDS).all()
    for rows in (fold[:23], fold[23:34], fold[:34]):
        counts = np.bincount(rows, minlength=5)
        assert counts.sum() == len(rows)
        assert counts.max() - counts.min() <= 1


# --- degenerate users ---


@pytest.mark.parametrize("minority", [0, 1])
def test_with_fewer_than_two_rows_of_a_second_class_there_is_only_pair(minority):
    X, y, silos, pool = a_case()
    y = (np.arange(len(y)) < minority).astype(int)
    verdict = ours_on(X, y, silos, pool, "classification")
    np.testing.assert_array_equal(verdict.weights, [1, 0, 0, 0])
    np.testing.assert_array_equal(verdict.theta, verdict.each[0])
    assert np.isfinite(verdict.theta).all()


def test_with_two_rows_of_a_second_class_all_candidates_are_validated():
    X, y, silos, pool = a_case()
    y = (np.arange(len(y)) < 2).astype(int)
    assert (np.asarray(ours_on(X, y, silos, pool, "classification").weights) > 0).all()


@pytest.mark.parametrize(
    "rows", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow), 3]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_handful_of_rows_gives_a_finite_answer(task, rows):
    X, y, silos, pool = a_case(task, n=60)
    verdict = ours_on(X[-rows:], y[-rows:], silos, pool, task)
    assert all(np.isfinite(a).all() for a in verdict)
    assert float(verdict.weights.sum()) == pytest.approx(1, abs=1e-6)


def test_without_a_row_the_answer_is_the_pool(x64):
    X, y, silos, pool = a_case()
    verdict = ours_on(X[:0], y[:0], silos, pool, "classification")
    np.testing.assert_array_equal(verdict.weights, [0, 0, 0, 1])
    np.testing.assert_allclose(verdict.theta, np.linalg.solve(oracle.base(5) + pool[0], pool[1]), atol=1e-9)


def test_a_silo_that_is_not_believed_has_no_relevance_and_no_share():
    X, y, silos, pool = a_case()
    silent = [*silos[:2], (0 * silos[2][0], 0 * silos[2][1])]
    verdict = ours_on(X, y, silent, pool, "classification", believed=(True, True, False))
    assert float(verdict.relevance[2]) == float(verdict.shares[2]) == 0
    assert float(verdict.relevance[0]) > 0.5


def test_equal_silos_count_equally_and_their_order_does_not_matter(x64):
    X, y, (one, two, _), pool = a_case()
    verdict = ours_on(X, y, [one, one, two], pool, "classification")
    moved = ours_on(X, y, [two, one, one], pool, "classification")
    for name in ("relevance", "shares"):  # `joint` takes silos in turn, and stops after three
        first, second, third = getattr(verdict, name)
        assert float(first) == pytest.approx(float(second), abs=0.02)
        np.testing.assert_allclose(getattr(moved, name), [third, second, first], atol=0.02)
    np.testing.assert_allclose(moved.each[0], verdict.each[0], atol=1e-10)
    np.testing.assert_allclose(moved.theta, verdict.theta, atol=1e-2)


def test_every_silo_is_judged_by_itself_in_pair(x64):
    X, y, (one, two, three), _ = a_case()
    rows, prior = rows_from(X, y), glm.base_precision(5, 1)
    theta = local.alone(rows, "classification", prior)[1]

    def relevance(silos):
        others = Quadratic(*(jnp.asarray(np.array(part)) for part in zip(*silos, strict=True)))
        own = glm.expand(rows, theta, "classification")
        return np.asarray(borrow.pair(prior, borrow.messages(others, 1), own, theta).relevance)

    first, second, third = relevance([one, two, three])
    np.testing.assert_allclose(relevance([three, one, one]), [third, first, first], rtol=1e-10)
    assert third < first
    assert second != first


# --- what is believed ---


def test_a_message_that_cannot_be_true_counts_as_nothing():
    H, h, n, reach = jnp.diag(jnp.array([3.0, 2.0, 0.0])), jnp.ones(3), jnp.float32(10), jnp.float32(0.6)
    accept = lambda H, h, n: summary.believed(Quadratic(H, h), n, reach)  # noqa: E731
    said, real = accept(H, h, n)
    assert bool(real)
    np.testing.assert_allclose(said.H, H, atol=1e-6)
    forged = {
        "not finite": (H.at[0, 0].set(jnp.inf), h, n),
        "no number": (H, h.at[1].set(jnp.nan), n),
        "a negative direction": (H.at[2, 2].set(-1.0), h, n),
        "negative beside the diagonal": (H.at[0, 1].set(4.0).at[1, 0].set(4.0), h, n),
        "more than its rows could give": (1000 * H, h, n),
        "no rows": (H, h, 0 * n),
        "fewer than no rows": (H, h, -n),
        "endless rows": (H, h, n / 0),
    }
    for why, one in forged.items():
        said, real = accept(*one)
        assert not bool(real), why
        assert not np.any(said.H), why
        assert not np.any(said.h), why


def test_what_rounding_made_negative_is_cut_off():
    H = np.diag([1000.0, 1.0, -0.5])
    said, real = summary.believed(Quadratic(jnp.asarray(H), jnp.ones(3)), jnp.float32(1e4), jnp.float32(1))
    assert bool(real)
    assert np.linalg.eigvalsh(np.asarray(said.H, float)).min() > -1e-3


@hypothesis.settings(max_examples=40)
@hypothesis.given(
    seed=st.integers(0, 10**6),
    exponents=st.lists(st.floats(-6, 6), min_size=3, max_size=3),
    rank=st.integers(0, 5),
    task=st.sampled_from(["classification", "regression"]),
)
def test_shares_and_relevances_of_any_messages_are_proportions(seed, exponents, rank, task):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(20, 4)), np.ones(20)])
    y = rng.integers(2, size=20) if task == "classification" else rng.normal(size=20)
    silos = [(10.0**e * random_psd(rng, 5, rank), 10.0**e * rng.normal(size=5)) for e in exponents]
    pool = tuple(sum(part) for part in zip(*silos, strict=True))
    verdict = ours_on(X, y, silos, pool, task)
    assert all(np.isfinite(a).all() for a in verdict)
    relevance, shares = np.asarray(verdict.relevance), np.append(verdict.shares, verdict.own)
    assert min(relevance) >= 0
    assert max(relevance) <= 1
    assert min(shares) >= -1e-6
    assert shares.sum() <= 1 + 1e-4


def test_features_that_no_row_shows_change_neither_the_own_optimum_nor_the_noise(x64):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(12, 3)), np.ones(12)])
    y = X @ [2.0, -1.0, 0.5, 3.0] + rng.normal(size=12)
    weight = np.r_[np.ones(10), np.zeros(2)]
    wide = np.column_stack([X[:, :3], np.zeros((12, 4)), X[:, 3:]])
    wide[10:, 3:7] = 7.0  # only in rows that do not count

    def found(X):
        rows = Rows(*map(jnp.asarray, (X, y, weight)))
        return summary.own_optimum(rows, "regression", jnp.asarray([*[1.0] * (X.shape[1] - 1), 0.1]))

    (theta, noise), (padded, padded_noise) = found(X), found(wide)
    np.testing.assert_allclose(padded_noise, noise)
    np.testing.assert_allclose(np.asarray(padded)[[0, 1, 2, 7]], theta)
    residual = y[:10] - X[:10] @ np.asarray(theta)
    np.testing.assert_allclose(1 / noise, (residual**2).sum() / (10 - 4))

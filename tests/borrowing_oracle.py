"""Evidence-weighted borrowing in plain numpy, float64: the formulas as written down, one set of rows at a time.

The intercept is the last column of X; two classes (0, 1) or least squares. Nothing here is shared with the library.
"""

import itertools

import numpy as np

GRID = list(itertools.product((0.05, 0.5, 5.0), (0.001, 0.01, 0.05, 0.25, 1.0)))  # (intercept, coefficient) variances


def base(d):
    """A0: 1 for coefficients, 0.1 for the intercept."""
    return np.diag([1.0] * (d - 1) + [0.1])


def derivatives(X, y, w, task):
    """Gradient and Hessian of the summed loss."""
    if task == "regression":
        return X.T @ (X @ w - y), X.T @ X
    p = 1 / (1 + np.exp(-X @ w))
    return X.T @ (p - y), (X * (p * (1 - p))[:, None]).T @ X


def loss(X, y, w, task):
    """The loss of every row."""
    z = X @ w
    return 0.5 * (z - y) ** 2 if task == "regression" else np.logaddexp(0, z) - y * z


def newton(X, y, A, b, task="classification", weight=1.0):
    """argmin weight * summed loss + 1/2 w'Aw - b'w, halving every step that does not help."""
    w = np.zeros(X.shape[1])
    value = lambda w: weight * loss(X, y, w, task).sum() + 0.5 * w @ A @ w - b @ w  # noqa: E731
    for _ in range(100):
        g, H = derivatives(X, y, w, task)
        step = np.linalg.solve(weight * H + A, weight * g + A @ w - b)
        t = 1.0
        while value(w - t * step) > value(w) and t > 1e-10:
            t /= 2
        if np.abs(step).max() < 1e-13:
            break
        w = w - t * step if t > 1e-10 else w - step
    return w


def quadratic(X, y, w, task="classification", weight=1.0):
    """(H, h) of 1/2 t'Ht - h't, the summed loss around w."""
    g, H = derivatives(X, y, w, task)
    return weight * H, weight * (H @ w - g)


def summary(X, y):
    """What a silo with two classes sends: H_i and h_i = (H_i + A0) w_i."""
    A0 = base(X.shape[1])
    w = newton(X, y, A0, np.zeros(len(A0)))
    H = derivatives(X, y, w, "classification")[1]
    return H, (H + A0) @ w


def message(H, h, tb, tw):
    """P(T) = (I + HT)^-1 H and p(T) = (I + HT)^-1 h."""
    d = len(h)
    inverse = np.linalg.inv(np.eye(d) + H @ np.diag([tw] * (d - 1) + [tb]))
    P = inverse @ H
    return (P + P.T) / 2, inverse @ h


def evidence(S, p, H0, h0):
    """Of the user's rows (H0, h0) under prior information (S, p)."""
    logdet = lambda A: np.linalg.slogdet(A)[1]  # noqa: E731
    J, v = S + H0, p + h0
    return -0.5 * (logdet(J) - logdet(S)) + 0.5 * v @ np.linalg.solve(J, v) - 0.5 * p @ np.linalg.solve(S, p)


def borrowed(S, p, said, H0, h0):
    """One silo's mean information on top of (S, p); prior 1/30 for each T, 1/2 for unrelated."""
    logs = [evidence(S + P, p + q, H0, h0) - np.log(30) for P, q in said] + [evidence(S, p, H0, h0) - np.log(2)]
    r = np.exp(np.array(logs) - max(logs))
    r /= r.sum()
    mean = [sum(r[g] * said[g][k] for g in range(len(said))) for k in (0, 1)]
    return mean[0], mean[1], 1 - r[-1]


def relevance(A0, said, H0, h0):
    """The chance of what a silo says (prior 1/2) against nothing (4/10) and the opposite (1/10)."""
    mean = lambda sign: np.mean([np.exp(evidence(A0 + P, sign * q, H0, h0) - top) for P, q in said])  # noqa: E731
    top = evidence(A0, np.zeros(len(A0)), H0, h0)
    return 0.5 * mean(1) / (0.5 * mean(1) + 0.4 + 0.1 * mean(-1))


def user_rows(X, y, task):
    """Weight of the rows (1 over the variance of residuals in a regression) and the user's optimum alone."""
    d = X.shape[1]
    A0, nothing = base(d), np.zeros(d)
    w = newton(X, y, A0, nothing, task)
    if task == "classification":
        return 1.0, w
    freedom = max(len(y) - np.trace(np.linalg.solve(X.T @ X + A0, X.T @ X)), 3)
    weight = freedom / max(((y - X @ w) ** 2).sum(), 1e-6 * freedom)
    return weight, newton(X, y, A0, nothing, task, weight)


def candidates(X, y, silos, pool, task="classification"):
    """The four candidates, [own, *silos] shares of information, and the silos' relevance."""
    d = X.shape[1]
    A0, nothing = base(d), np.zeros(d)
    weight, local = user_rows(X, y, task)
    fit = lambda H, h: newton(X, y, A0 + H, h, task, weight)  # noqa: E731
    said = [[message(H, h, *T) for T in GRID] for H, h in silos]
    H0, h0 = quadratic(X, y, local, task, weight)
    found = [borrowed(A0, nothing, one, H0, h0) for one in said]
    Ps, ps = ([f[k] for f in found] for k in range(2))
    relevances = [relevance(A0, one, H0, h0) for one in said]
    theta = {
        "pair": fit(sum(Ps), sum(ps)),
        "pair.3": fit(0.3 * sum(Ps), 0.3 * sum(ps)),
        "pool": fit(*pool),
        "local": local,
    }
    shares = {"pair": information(A0, H0, Ps), "pair.3": information(A0, H0, [0.3 * P for P in Ps])}
    traces = np.array([np.trace(H) for H, _ in silos])
    shares["pool"] = information(A0, H0, [t / traces.sum() * pool[0] for t in traces])
    Ps, ps, around = list(Ps), list(ps), theta["pair"]
    for _ in range(3):
        H0, h0 = quadratic(X, y, around, task, weight)
        for i, one in enumerate(said):
            S, p = A0 + sum(Ps) - Ps[i], sum(ps) - ps[i]
            Ps[i], ps[i], _ = borrowed(S, p, one, H0, h0)
        around = fit(sum(Ps), sum(ps))
    theta["joint"], shares["joint"] = around, information(A0, H0, Ps)
    return theta, shares, relevances


def information(A0, H0, Ps):
    """tr(S H0)/d, tr(S P_i)/d with S the inverse of all precision; the rest to 1 is the prior's."""
    S = np.linalg.inv(A0 + H0 + sum(Ps))
    return np.array([np.trace(S @ M) for M in (H0, *Ps)]) / len(A0)


def verdict(X, y, silos, pool, fold, task="classification", names=("pair", "pair.3", "joint", "pool")):
    """Weights, scores, parameters, shares and relevances of the average over candidates, with given folds."""
    n, losses = len(y), dict.fromkeys(names, 0.0)
    for k in range(fold.max() + 1):
        out = fold == k
        theta, _, _ = candidates(X[~out], y[~out], silos, pool, task)
        for name in names:
            losses[name] += loss(X[out], y[out], theta[name], task).sum()
    mean = np.array([losses[name] for name in names]) / n
    score = 0.5 * np.log(2 * mean) if task == "regression" else mean
    a = np.exp(-n * (score - score.min()))
    a /= a.sum()
    theta, shares, relevances = candidates(X, y, silos, pool, task)
    mix = lambda each: sum(weight * np.asarray(each[name]) for weight, name in zip(a, names, strict=True))  # noqa: E731
    return {"weights": a, "scores": score, "theta": mix(theta), "shares": mix(shares), "relevance": relevances}

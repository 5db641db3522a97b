"""ML basics (book, chapter 2): a linear model of the temperature, polynomials, and ridge regression.

The first 100 rows of the file are for training, all others for validation. Polynomials are those of the seven features,
all products up to the degree; ridge regression has the penalty alpha |w|^2 beside the mean squared error, and without
it the model is that of least norm. Errors are natural logarithms where the notebook plots them.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.networks import ridge
from confrere.reproduce.book.numbers import Reference, both

TRAINING = 100
ALPHAS = (1e-9, 5e-9, 1e-8, 1e-7, 1e-6, 5e-5)
PLOTTED = {1: (2.838067, 2.904390), 2: (2.344587, 2.785138), 3: (1.224605, 3.576186)}
PLOTTED_RIDGE = (3.045396, 2.913587, 2.897616, 2.848818, 2.801946, 2.890087)
REFERENCES = {
    **both("linear", Reference(17.082721), Reference(18.091205, 18.254113)),
    **{
        f"polynomial.{degree}.{part}": Reference(None, value)
        for degree, values in PLOTTED.items()
        for part, value in zip(("log_train", "log_validation"), values, strict=True)
    },
    **{
        f"ridge.{alpha:g}.log_validation": Reference(None, value)
        for alpha, value in zip(ALPHAS, PLOTTED_RIDGE, strict=True)
    },
}


def run() -> dict[str, Any]:
    """All errors."""
    from sklearn.preprocessing import PolynomialFeatures

    rows = rows_of("2024")
    features = {d: PolynomialFeatures(d, include_bias=False).fit_transform(rows.X) for d in (1, 2, 3)}
    curves = {degree: errors(X, rows.y, 0.0) for degree, X in features.items()}
    penalised = {alpha: errors(features[3], rows.y, alpha) for alpha in ALPHAS}
    return {
        "linear": dict(zip(("train", "validation"), curves[1], strict=True)),
        "polynomial": {str(degree): logarithms(*pair) for degree, pair in curves.items()},
        "ridge": {f"{alpha:g}": logarithms(*pair) for alpha, pair in penalised.items()},
    }


def errors(X: np.ndarray, y: np.ndarray, alpha: float) -> tuple[float, float]:
    """Training and validation error of a linear model with intercept, which is not penalised."""
    centre, level = X[:TRAINING].mean(axis=0), y[:TRAINING].mean()
    rows, labels = X - centre, y - level
    off = (labels - rows @ ridge(rows[:TRAINING], labels[:TRAINING], alpha)) ** 2
    return float(off[:TRAINING].mean()), float(off[TRAINING:].mean())


def logarithms(train: float, validation: float) -> dict[str, float]:
    """Both errors as the notebook plots them."""
    return {"log_train": float(np.log(train)), "log_validation": float(np.log(validation))}

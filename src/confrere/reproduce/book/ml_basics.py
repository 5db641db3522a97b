"""ML basics (book, chapter 2): a linear model of the temperature, polynomials, and ridge regression.

The first 100 rows of the file are for training, all others for validation. Polynomials are those of the seven features,
all products up to the degree; ridge regression has the penalty alpha |w|^2 beside the mean squared error, which is
scikit-learn's with alpha times the number of rows. Errors are natural logarithms where the notebook plots them.
"""

from typing import Any

import numpy as np

from confrere.data.fmi import rows_of
from confrere.reproduce.book.numbers import Reference, both
from confrere.reproduce.book.stations import squared_error

TRAINING = 100
ALPHAS = (1e-9, 5e-9, 1e-8, 1e-7, 1e-6, 5e-5)
PLOTTED = {1: (2.8381, 2.9044), 2: (2.3446, 2.7851), 3: (1.2246, 3.5762)}
REFERENCES = {
    **both("linear", Reference(17.082721), Reference(18.091205, 18.254113)),
    **{
        f"polynomial.{degree}.{part}": Reference(None, value)
        for degree, values in PLOTTED.items()
        for part, value in zip(("log_train", "log_validation"), values, strict=True)
    },
    **{
        f"ridge.{alpha:g}.log_validation": Reference(None, value)
        for alpha, value in zip(ALPHAS, (3.0454, 2.9136, 2.8976, 2.8488, 2.8019, 2.8901), strict=True)
    },
}


def run() -> dict[str, Any]:
    """All errors."""
    from sklearn.linear_model import LinearRegression, Ridge
    from sklearn.preprocessing import PolynomialFeatures

    rows = rows_of("2024")
    y, y_validation = rows.y[:TRAINING], rows.y[TRAINING:]

    def errors(model, degree: int) -> tuple[float, float]:
        features = PolynomialFeatures(degree, include_bias=False).fit(rows.X[:1])
        X, X_validation = (features.transform(part) for part in (rows.X[:TRAINING], rows.X[TRAINING:]))
        model.fit(X, y)
        return squared_error(y, model.predict(X)), squared_error(y_validation, model.predict(X_validation))

    curves = {degree: errors(LinearRegression(), degree) for degree in (1, 2, 3)}
    ridge = {alpha: errors(Ridge(alpha=alpha * TRAINING), 3) for alpha in ALPHAS}
    return {
        "linear": dict(zip(("train", "validation"), curves[1], strict=True)),
        "polynomial": {str(degree): logarithms(*pair) for degree, pair in curves.items()},
        "ridge": {f"{alpha:g}": logarithms(*pair) for alpha, pair in ridge.items()},
    }


def logarithms(train: float, validation: float) -> dict[str, float]:
    """Both errors as the notebook plots them."""
    return {"log_train": float(np.log(train)), "log_validation": float(np.log(validation))}

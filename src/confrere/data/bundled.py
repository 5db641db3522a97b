"""Data sets that scikit-learn brings along, dealt out to silos that never were.

Features are standardised over all rows before any split, a small leak between silos and into the test rows; splits look
at the values as they were recorded.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from confrere.data import splits
from confrere.data.dealing import deal_source, one_silo, split_name
from confrere.data.silos import Silos
from confrere.data.source import Split


def breast_cancer(silos: int = 4, split: Split | None = None, seed: int = 0) -> Silos:
    """Breast masses: 569 rows, 30 features of cell nuclei; the label is malignant (0) or benign (1).

    Wolberg, Mangasarian, Street, Street: Breast Cancer Wisconsin (Diagnostic), 1993. Dealt out at random to as many
    `silos`, or by a `split` (see `confrere.data.splits`, which then says how many); half of each silo is for test.

    >>> import confrere as cf
    >>> silos = cf.data.breast_cancer()
    >>> silos.sizes("train"), silos.label_names, silos.kind
    ((71, 70, 70, 70), ('malignant', 'benign'), 'artificial')
    """
    bunch = bundled("load_breast_cancer")
    return dealt(bunch, "Breast Cancer Wisconsin", tuple(map(str, bunch.target_names)), silos, split, seed)


def diabetes(silos: int = 4, split: Split | None = None, seed: int = 0) -> Silos:
    """Diabetes patients: 442 rows, 10 features; the label is how far the disease went in a year, an amount.

    Efron, Hastie, Johnstone, Tibshirani: Least angle regression, 2004. Dealt out as `breast_cancer` is; a split may
    look at age, sex (1 or 2), bmi, bp, s1 to s6 as they were recorded.

    >>> import confrere as cf
    >>> cf.data.diabetes(split=cf.data.splits.by("sex")).sizes("train")
    (117, 103)
    """
    bunch = bundled("load_diabetes", scaled=False)
    return dealt(bunch, "Diabetes", None, silos, split, seed)


def bundled(loader: str, **how: Any) -> Any:
    """One of scikit-learn's data sets."""
    try:
        from sklearn import datasets
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "this data set comes with scikit-learn, which is not installed: pip install 'confrere[data]'",
            name=problem.name,
        ) from problem
    return getattr(datasets, loader)(**how)


def dealt(
    bunch: Any, title: str, label_names: tuple[str, ...] | None, silos: int, split: Split | None, seed: int
) -> Silos:
    """The data set standardised, dealt out, and halved as in the Weight Erosion paper."""
    raw, names = np.asarray(bunch.data, np.float64), tuple(str(name) for name in bunch.feature_names)
    X = (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1)
    how = splits.iid(silos) if split is None else split
    source = one_silo(title, X, bunch.target, names, label_names, dict(zip(names, raw.T, strict=True)))
    origin = f"{title} ({len(X)} rows), features standardised over all rows, dealt out by {split_name(how)}"
    return replace(deal_source(source, how, seed), kind="artificial", origin=origin).halve()

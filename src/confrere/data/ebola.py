"""Synthetic patients of an Ebola treatment centre: a generator, because the real table is private.

The table behind the case study of the Weight Erosion report (Grimberg and Jaggi, 2020, section 5; patients of the
GOAL-Mathaska centre in Port Loko, described in Hartley et al., Predicting Ebola infection, 2017) cannot be shared.
What is known about it was used; what is not known was assumed. NOTHING HERE IS A PATIENT, and no number that is
computed from it says anything about Ebola.

Known, from the authors' program and its printed results:

* 575 rows, 158 of them EVD(+); nine features, in the order of `FEATURES`.
* The logistic regression on the pooled rows: `INTERCEPT` and `COEFFICIENTS`.
* quarantine (a reported contact): 136 ones, 415 zeros, 24 missing. Missing is 0, with an indicator of its own.
* referral(4-9), 4 to 9 days since the first symptoms: .364754 of the known; 87 missing, filled with the known mean.
* Age limits 20 and 40. Batches of 125: one in each user's training half, two in each other silo; so every age group
  has 126 to 250 rows. The rate of EVD(+) is below .25 in the test rows of the middle group, above .35 in the others'.

Assumed:

* haemorrhage and myalgia have the coefficient 0, since none was printed (Hartley et al. found the first to speak for
  EVD(+), the second against).
* Age groups have 29, 42 and 29 % of the rows; ages are uniform within 0-20, 21-40, 41-80.
* `PREVALENCE` of the six symptoms, chosen together so that the expected rate of EVD(+) is .2756 (158/575 = .2748).
* Contacts are rarer in the middle group (.08 against .35, .2366 over all: 136/575), which makes its rate of EVD(+)
  the lowest: .22 against .32 and .31. Pyrexia is commoner in the young, as malaria is. p(y|x) is the same for all.
* Given the age group, features are independent, and values are missing at random; the label is drawn from the
  features as the model sees them, filled values included, since that is what the coefficients were fitted to.
"""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from confrere.data import splits
from confrere.data.dealing import deal_source, one_silo
from confrere.data.pool import apportion
from confrere.data.silos import Silos
from confrere.data.source import Hand, Pool, Split

EbolaSplit = Literal["age-strict", "age-some"]
LIMITS = (20, 40)
BATCH = 125
ROWS = 575
INTERCEPT = -2.828
COEFFICIENTS = {
    "quarantine": 1.82, "quarantine_missing": 0.354, "conjunctivitis": 1.397, "diarrhea": 1.049,
    "referral(4-9)": 1.082, "pyrexia": 0.377, "dysphagia": 0.56, "hemorrhage": 0.0, "myalgia": 0.0,
}  # fmt: skip
FEATURES = tuple(COEFFICIENTS)
GROUP_SHARES = (0.29, 0.42, 0.29)
GROUP_AGES = ((0, 20), (21, 40), (41, 80))
PREVALENCE = {  # by age group
    "quarantine": (0.35, 0.08, 0.35),
    "conjunctivitis": (0.15, 0.15, 0.15),
    "diarrhea": (0.30, 0.30, 0.30),
    "referral(4-9)": (0.364754, 0.364754, 0.364754),
    "pyrexia": (0.50, 0.35, 0.35),
    "dysphagia": (0.20, 0.20, 0.20),
    "hemorrhage": (0.05, 0.05, 0.05),
    "myalgia": (0.50, 0.50, 0.50),
}
QUARANTINE_MISSING = 24 / 575
REFERRAL_MISSING = 87 / 575


def ebola_synthetic(split: EbolaSplit = "age-strict", seed: int = 0, rows: int = ROWS) -> Silos:
    """Three silos of SYNTHETIC Ebola patients by age, each with about half its rows for test.

    `age-strict`: 0 to 20, 21 to 40, 41 or older. `age-some`: the first two shuffled together and halved. The label is
    EVD(+), nine features as in the report; the module says which numbers are known and which assumed.

    >>> import confrere as cf
    >>> silos = cf.data.ebola_synthetic("age-strict", seed=0)
    >>> silos.names, silos.sizes("train")
    (('0-20 (synthetic)', '21-40 (synthetic)', '41+ (synthetic)'), (83, 120, 83))
    >>> silos.kind
    'synthetic'
    """
    if split not in get_args(EbolaSplit):
        raise ValueError(f"split must be one of {', '.join(get_args(EbolaSplit))}, not {split!r}")
    if rows < 10:
        raise ValueError(f"rows must be 10 or more, so that every age group has some, not {rows}")
    rng = np.random.default_rng(seed)
    age, X, y = patients(rows, rng)
    columns = {"age": age, **dict(zip(FEATURES, X.T, strict=True))}
    source = one_silo("synthetic", X, y, FEATURES, ("EVD(-)", "EVD(+)"), columns)
    maker = splits.age_strict if split == "age-strict" else splits.age_some
    silos = deal_source(source, marked(maker(LIMITS)), seed)
    origin = f"synthetic Ebola patients ({rows} rows drawn with seed {seed}), dealt out by {split}"
    return replace(silos, kind="synthetic", origin=origin).halve()


def patients(rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ages [rows], features [rows, 9] and labels of invented patients."""
    group = np.repeat(np.arange(3), apportion(rows, GROUP_SHARES))
    youngest, oldest = np.array(GROUP_AGES).T
    age = rng.integers(youngest[group], oldest[group], endpoint=True).astype(np.float64)
    values = {name: (rng.random(rows) < np.array(share)[group]) * 1.0 for name, share in PREVALENCE.items()}
    # Missing values come on top, among the others: so that of all rows as many report a contact as in the table,
    # only those without one can be missing.
    free = values["quarantine"] == 0
    unasked = free & (rng.random(rows) < QUARANTINE_MISSING / (1 - 136 / 575))
    values["quarantine_missing"] = unasked * 1.0
    undated = rng.random(rows) < REFERRAL_MISSING
    referral = values["referral(4-9)"]
    known_mean = referral[~undated].mean() if not undated.all() else 0.0
    values["referral(4-9)"] = np.where(undated, known_mean, referral)
    X = np.stack([values[name] for name in FEATURES], axis=1)
    score = INTERCEPT + X @ np.array(list(COEFFICIENTS.values()))
    return age, X, (rng.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int64)


def marked(how: Split) -> Split:
    """The same split, with silos that say that they are synthetic."""

    def split(pool: Pool, rng: np.random.Generator) -> list[Hand]:
        return [hand._replace(name=f"{hand.name} (synthetic)") for hand in how(pool, rng)]

    return split

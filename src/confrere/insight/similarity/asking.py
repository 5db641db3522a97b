"""Asking all silos: `similarity`, from silos to what every measure found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from confrere.checks import check_counts, check_numbers
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.insight.similarity.common_set import ROWS, given_rows
from confrere.insight.similarity.measured import Measured
from confrere.insight.similarity.measures import MEASURES
from confrere.insight.similarity.pairs import influences, transfers
from confrere.insight.similarity.similarity import Similarity
from confrere.insight.similarity.telling import BLOCKS, Telling
from confrere.models import Model
from confrere.selection.asking import start_with
from confrere.selection.linear import linear_rows
from confrere.simulation.inputs import check_types

FEWEST_ROWS = 3  # below which nobody can judge anything


def similarity(
    silos: Silos,
    measures: str | Sequence[str] = "all",
    *,
    model: Model | None = None,
    l2: float = 0.01,
    resamples: int = 100,
    min_group: int = 5,
    common: Any = None,
    common_rows: int = ROWS,
    seed: int = 0,
) -> Similarity:
    """How alike all pairs of silos are, in several senses, from what may be shared of their training rows.

    Args:
        measures: "all", or some of "models", "gradients", "transfer", "influence", "outcomes", "features" and
            "predictions".
        model: linear or logistic regression, by default the one for the labels.
        l2: of the objective mean loss + l2/2 |w|^2 of every silo's own model.
        resamples: draws of every silo's rows behind intervals, the map's ellipses and the groups; 0: none.
        min_group: of what fewer rows of a silo have or know nothing is told; a silo with fewer rows tells nothing.
        common: rows on which predictions are compared, as numbers [c, features] or as a table like the silos'; by
            default `common_rows` rows drawn from the pooled summaries of the features.

    >>> import confrere as cf
    >>> found = cf.insight.similarity(cf.data.titanic("age-some"), ["models", "transfer"], resamples=20)
    >>> found.like("0-35 a")[0].silo
    '0-35 b'
    """
    names = chosen(measures)
    check_numbers(l2=l2)
    check_counts(0, resamples=resamples)
    check_counts(min_group=min_group, common_rows=common_rows)
    if len(silos) < 2:
        raise ValueError(f"silo {silos.names[0]!r} is alone: there is nobody to compare it with")
    ordered = replace(silos, silos=tuple(sorted(silos.silos, key=lambda s: s.name)), source=None)
    without = left_out(ordered, min_group)
    who = [name for name in ordered.names if name not in without]
    if len(who) < 2:
        least = max(min_group, FEWEST_ROWS)
        raise ValueError(
            f"{len(who)} of {len(silos)} silos have {least} training rows or more: there is no pair of them"
        )
    ready, fitting = prepared(ordered, who, model)
    rows = None if common is None else given_rows(silos, common)
    with jax.enable_x64(True):
        found = asked(ready, who, fitting, names, l2, min_group, resamples, seed, rows, common_rows)
    back = [ordered.names.index(name) for name in silos.names]
    return Similarity(
        silos.names, silos.sizes("train"), {m.name: reordered(m, back) for m in found}, silos.feature_names, resamples,
        min_group, fitting.task, without,
    )  # fmt: skip


def chosen(measures: str | Sequence[str]) -> tuple[str, ...]:
    """The measures that are asked for, in the order of the table of measures."""
    asked_for = tuple(MEASURES) if measures == "all" else (measures,) if isinstance(measures, str) else tuple(measures)
    unknown = [name for name in asked_for if name not in MEASURES]
    if unknown or not asked_for:
        wrong = f"there is no {unknown[0]!r}" if unknown else "name one at least"
        raise ValueError(f"measures: {wrong}; there are {', '.join(MEASURES)}, and 'all'")
    return tuple(name for name in MEASURES if name in asked_for)


def left_out(silos: Silos, min_group: int) -> dict[str, str]:
    """Silos with too few rows, of which nothing is told."""
    least = max(min_group, FEWEST_ROWS)
    sizes = zip(silos.names, silos.sizes("train"), strict=True)
    return {n: f"it has {m} training rows, and of fewer than {least} nothing is told" for n, m in sizes if m < least}


def prepared(silos: Silos, who: Sequence[str], model: Model | None) -> tuple[Silos, Model]:
    """The silos' training rows and the model; labels that are amounts in standard units."""
    _, _, fitting = start_with(silos, who[0], model, "train")
    check_types(fitting, silos)
    only = [Silo(s.name, *s.rows("train"), np.zeros(s.count("train"), np.int8)) for s in silos.silos]
    if fitting.task == "regression":
        labels = np.concatenate([s.y for s in only if s.name in who]).astype(float)
        centre, spread = labels.mean(), labels.std()
        only = [replace(s, y=(s.y - centre) / (spread if spread > 0 else 1.0)) for s in only]
    return replace(silos, silos=tuple(only), source=None), fitting


def asked(
    silos: Silos, who: list[str], model: Model, names: Sequence[str], l2: float, min_group: int, resamples: int,
    seed: int, common: np.ndarray | None, common_rows: int,
) -> list[Measured]:  # fmt: skip
    """What every measure found."""
    data = linear_rows(silos, model, l2, "similarity")
    telling = Telling(silos, data, who, min_group, resamples, seed, common, common_rows)
    for name in (*(n for n in BLOCKS if n in names), *(["models"] if "transfer" in names else [])):
        telling.block(name)
    telling.settle()
    found = []
    for name in names:
        if name in BLOCKS:
            found.append(telling.measured(name))
        elif name == "transfer":
            found.append(transfers(data, silos, telling.said["models"], telling.offs["models"], resamples, seed))
        else:
            found.append(influences(silos, who, model, l2, resamples, seed))
    return found


def reordered(found: Measured, order: Sequence[int]) -> Measured:
    """The same with silos in another order."""
    square = np.ix_(order, order)
    turned: dict[str, Any] = {}
    for name in ("matrix", "low", "high", "dissimilarity", "draws", "noise", "features"):
        values = getattr(found, name)
        turned[name] = None if values is None else values[(..., *square)]
    return replace(found, **turned)

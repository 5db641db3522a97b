"""What the figures share: names, colours that colour-blind people can tell apart (Okabe and Ito), and what is drawn."""

from typing import NamedTuple

import numpy as np

from confrere.data.silos import Silos
from confrere.reproduce.runs import Result


class Scheme(NamedTuple):
    """How an algorithm is shown."""

    title: str
    colour: str


SCHEMES = {
    "fedavg": Scheme("FedAvg", "#D55E00"),
    "weight_erosion": Scheme("Weight Erosion", "#0072B2"),
    "local": Scheme("Local", "#009E73"),
}
SILO_COLOURS = ("#E69F00", "#56B4E9", "#CC79A7", "#000000", "#009E73", "#0072B2")


def constant_predictors(silos: Silos, user: int) -> tuple[float, float]:
    """The accuracy of always saying the rarer, and the commoner, label on the user's test rows."""
    share = float(silos[user].rows("test")[1].mean())
    return min(share, 1 - share), max(share, 1 - share)


def model_values(result: Result, user: int) -> np.ndarray:
    """Bias and weights of the user's model, [1 + features, 2]."""
    return np.concatenate([result.params["b"][user][None], result.params["w"][user]])

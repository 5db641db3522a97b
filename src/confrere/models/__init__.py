"""Models: plain functions on dict pytrees, so that n models stacked are one more axis."""

from confrere.models.dla import dla
from confrere.models.lenet import lenet5
from confrere.models.linear import linear, logistic
from confrere.models.metrics import METRICS, metrics_of
from confrere.models.mlp import mlp
from confrere.models.model import Model

__all__ = ["METRICS", "Model", "dla", "lenet5", "linear", "logistic", "metrics_of", "mlp"]

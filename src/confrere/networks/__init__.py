"""Networks of silos, each with a model of its own, coupled by generalised total variation.

Jung: Federated Learning: From Theory to Practice (2024), chapters 2 to 8, is "the book" here; numbers of equations,
propositions and algorithms are its own. Where it errs, the code has what is right, and says so.
"""

from confrere.networks import bounds
from confrere.networks.accelerated import accelerated_fedgd, extreme_eigenvalues
from confrere.networks.descent import (
    Run,
    Stop,
    decrease,
    fedgd,
    inverse,
    inverse_root,
    single_model,
    small_gradient,
    within,
)
from confrere.networks.failing import Faulty, faulty_fedgd
from confrere.networks.network import Network
from confrere.networks.problem import GTVMin
from confrere.networks.relaxation import async_fedgd, fedavg, fedrelax
from confrere.networks.statistics import Quadratic
from confrere.networks.stochastic import fedsgd

__all__ = [
    "Faulty",
    "GTVMin",
    "Network",
    "Quadratic",
    "Run",
    "Stop",
    "accelerated_fedgd",
    "async_fedgd",
    "bounds",
    "decrease",
    "extreme_eigenvalues",
    "faulty_fedgd",
    "fedavg",
    "fedgd",
    "fedrelax",
    "fedsgd",
    "inverse",
    "inverse_root",
    "single_model",
    "small_gradient",
    "within",
]

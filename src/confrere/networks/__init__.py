"""Networks of silos, each with a model of its own, coupled by generalised total variation.

Jung: Federated Learning: From Theory to Practice (2024), chapters 2 to 8, is "the book" here; numbers of equations,
propositions and algorithms are its own. Where it errs, the code has what is right, and says so.
"""

from confrere.networks.network import Network
from confrere.networks.problem import GTVMin
from confrere.networks.statistics import Quadratic

__all__ = ["GTVMin", "Network", "Quadratic"]

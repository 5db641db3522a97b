from .credit import Dilution, Ledger, Shapley, dilution, rewards, shapley
from .explanations import Disagreement, Why, disagreement, why
from .similarity import Planar, planar

__all__ = [
    "Dilution",
    "Disagreement",
    "Ledger",
    "Planar",
    "Shapley",
    "Why",
    "dilution",
    "disagreement",
    "planar",
    "rewards",
    "shapley",
    "why",
]

from .credit import Ledger, Shapley, rewards, shapley
from .explanations import Disagreement, Why, disagreement, why
from .similarity import Planar, planar

__all__ = [
    "Disagreement",
    "Ledger",
    "Planar",
    "Shapley",
    "Why",
    "disagreement",
    "planar",
    "rewards",
    "shapley",
    "why",
]

from .explanations import Disagreement, Why, disagreement, why
from .similarity import Planar, planar

__all__ = [
    "Disagreement",
    "Planar",
    "Why",
    "disagreement",
    "planar",
    "why",
]

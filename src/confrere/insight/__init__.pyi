from .similarity import Planar, planar

__all__ = [
    "Planar",
    "planar",
]

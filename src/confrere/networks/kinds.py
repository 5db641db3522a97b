"""What kind of problem an algorithm needs, and the refusal of others."""

from confrere.networks.problem import GTVMin
from confrere.networks.statistics import Quadratic


def smooth(p: GTVMin) -> GTVMin:
    """Refuse a penalty without gradient."""
    if p.norm:
        raise ValueError("the norm as penalty has no gradient where models are equal: use solve() or network_lasso")
    return p


def quadratic_of(p: GTVMin, what: str) -> Quadratic:
    """The statistics of a problem with quadratic losses and squared penalty."""
    return smooth(p).quadratic_for(what)

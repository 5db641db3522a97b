"""What kind of problem an algorithm needs, and the refusal of others."""

from confrere.networks.problem import GTVMin
from confrere.networks.statistics import Quadratic


def problem(p: GTVMin) -> GTVMin:
    """Refuse what is no problem."""
    if not isinstance(p, GTVMin):
        raise TypeError(f"p must be a problem, such as GTVMin(network, alpha=1.0, X=X, y=y), not {type(p).__name__}")
    return p


def smooth(p: GTVMin) -> GTVMin:
    """Refuse a penalty without gradient."""
    if problem(p).norm:
        raise ValueError("the norm as penalty has no gradient where models are equal: use solve() or network_lasso")
    return p


def quadratic_of(p: GTVMin, what: str) -> Quadratic:
    """The statistics of a problem with quadratic losses and squared penalty."""
    return smooth(p).quadratic_for(what)

"""Clients: what happens inside one silo, between its inbox and its message."""

from confrere.clients.gradient import gradient
from confrere.clients.sgd import fine_tuned, sgd

__all__ = ["fine_tuned", "gradient", "sgd"]

"""Clients: what happens inside one silo, between its inbox and its message."""

from confrere.clients.controlled import controlled
from confrere.clients.ditto import ditto
from confrere.clients.gradient import gradient
from confrere.clients.optimum import optimum
from confrere.clients.sgd import fine_tuned, sgd
from confrere.clients.summaries import summaries

__all__ = ["controlled", "ditto", "fine_tuned", "gradient", "optimum", "sgd", "summaries"]

"""Clients: what happens inside one silo, between its inbox and its message."""

from confrere.clients.alternating import alternating
from confrere.clients.apfl import apfl
from confrere.clients.attentive import attentive
from confrere.clients.choosing import choosing
from confrere.clients.context import contextual
from confrere.clients.controlled import controlled
from confrere.clients.coupled import coupled
from confrere.clients.ditto import ditto
from confrere.clients.gradient import gradient
from confrere.clients.gtv import gtv_gradient, gtv_prox, prox_average
from confrere.clients.interpolated import interpolated
from confrere.clients.judging import judging
from confrere.clients.keep import keep
from confrere.clients.meta import meta
from confrere.clients.optimum import optimum
from confrere.clients.proximal import moreau, proximal
from confrere.clients.sgd import fine_tuned, sgd
from confrere.clients.summaries import summaries

__all__ = [
    "alternating",
    "apfl",
    "attentive",
    "choosing",
    "contextual",
    "controlled",
    "coupled",
    "ditto",
    "fine_tuned",
    "gradient",
    "gtv_gradient",
    "gtv_prox",
    "interpolated",
    "judging",
    "keep",
    "meta",
    "moreau",
    "optimum",
    "prox_average",
    "proximal",
    "sgd",
    "summaries",
]

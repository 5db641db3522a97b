"""The named algorithms: compositions of parts, each with its citation.

Every function returns a `Recipe`: the model comes from the host, and the numbers (learning rates, penalties, the user)
stay open, so that another value does not recompile and a grid is a `vmap`.

    local          = federate(sgd,      alone())
    fedsgd         = federate(gradient, server(weighted(by_size()), x=step(sgd(lr))))
    fedavg         = federate(sgd,      server(weighted(by_size())))
    fine_tuned     = federate(fine_tuned(sgd), server(weighted(by_size())))
    ditto          = federate(ditto(sgd),      server(weighted(by_size())))
    apfl           = federate(apfl,            server(weighted(by_size())))
    fedper         = federate(keep(sgd, head),         server(weighted(by_size())))
    fedrep         = federate(keep(alternating, head), server(weighted(by_size())))
    fedbn          = federate(keep(sgd, norms),        server(weighted(by_size())))
    featurised     = federate(contextual(sgd),         server(weighted(by_size())))
    model_interpolation = federate(interpolated(sgd), server(weighted(by_size())))
    data_interpolation  = federate(sgd, server(weighted(interpolated(user, own_share, by_size()))))
    fedprox        = federate(proximal,        server(weighted(by_size())))
    pfedme         = federate(moreau,          server(weighted(by_size()), x=step(sgd(beta))))
    fedopt         = federate(sgd,             server(weighted(by_size()), x=step(adam | yogi | adagrad | sgd)))
    per_fedavg     = federate(meta,            server(weighted(by_size())))
    multi_task     = federate(coupled,         server(weighted(uniform()), x=table()))
    weight_erosion = federate(gradient | sgd, server(weighted(erosion(user, p_d, p_s)), x=step(sgd(lr))))
    scaffold       = federate(controlled, server(weighted(uniform()), x=step(sgd(server_lr)), c=add()))
    waffle         = federate(controlled, server(weighted(omega(user, rounds)), x=step(sgd(server_lr)), c=table()))
    ifca           = federate(choosing(sgd),   server(weighted(chosen(k, by_size())), deliver="all"))
    clustered      = federate(sgd,      server(weighted(cluster(eps1, eps2, gamma, by_size())), deliver="own"))
    fedamp         = federate(attentive, peers(weighted(attention(attention, sigma))))
    fedfomo        = federate(judging(sgd),    exchange())
    gtv_gd         = federate(gtv_gradient, peers(weighted(graph(network))))     gtv_sgd: on one batch
    gtv_async      = federate(gtv_gradient, mailbox(peers(weighted(graph(network)))))
    gtv_relax      = federate(gtv_prox,     peers(weighted(graph(network))))
    fedavg_prox    = federate(prox_average, server(weighted(uniform())))
    ridge_local    = federate(optimum,   alone())
    evidence       = federate(summaries, bulletin(user))
"""

from confrere.algorithms.adaptive import fedopt
from confrere.algorithms.baselines import fedavg, fedsgd, local, ridge_local
from confrere.algorithms.beside import ditto, fine_tuned
from confrere.algorithms.borrowing import evidence
from confrere.algorithms.clusters import clustered, ifca
from confrere.algorithms.context import featurised
from confrere.algorithms.controlled import scaffold, waffle
from confrere.algorithms.coupled import multi_task
from confrere.algorithms.gtv import fedavg_prox, gtv_async, gtv_gd, gtv_relax, gtv_sgd
from confrere.algorithms.interpolation import apfl, data_interpolation, model_interpolation
from confrere.algorithms.layers import fedbn, fedper, fedrep
from confrere.algorithms.listening import weight_erosion
from confrere.algorithms.meta import per_fedavg
from confrere.algorithms.peers import fedamp, fedfomo
from confrere.algorithms.proximal import fedprox, pfedme

__all__ = [
    "apfl",
    "clustered",
    "data_interpolation",
    "ditto",
    "evidence",
    "featurised",
    "fedamp",
    "fedavg",
    "fedavg_prox",
    "fedbn",
    "fedfomo",
    "fedopt",
    "fedper",
    "fedprox",
    "fedrep",
    "fedsgd",
    "fine_tuned",
    "gtv_async",
    "gtv_gd",
    "gtv_relax",
    "gtv_sgd",
    "ifca",
    "local",
    "model_interpolation",
    "multi_task",
    "per_fedavg",
    "pfedme",
    "ridge_local",
    "scaffold",
    "waffle",
    "weight_erosion",
]

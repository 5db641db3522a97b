"""The named algorithms: compositions of parts, each with its citation.

Every function returns a `Recipe`: the model comes from the host, and the numbers (learning rates, penalties, the user)
stay open, so that another value does not recompile and a grid is a `vmap`.

    local          = federate(sgd,      alone())
    fedsgd         = federate(gradient, server(weighted(by_size()), x=step(sgd(lr))))
    fedavg         = federate(sgd,      server(weighted(by_size())))
    fine_tuned     = federate(fine_tuned(sgd), server(weighted(by_size())))
    ditto          = federate(ditto(sgd),      server(weighted(by_size())))
    weight_erosion = federate(gradient | sgd, server(weighted(erosion(user, p_d, p_s)), x=step(sgd(lr))))
    scaffold       = federate(controlled, server(weighted(uniform()), x=step(sgd(server_lr)), c=add()))
    waffle         = federate(controlled, server(weighted(omega(user, rounds)), x=step(sgd(server_lr)), c=table()))
    ridge_local    = federate(optimum,   alone())
    evidence       = federate(summaries, bulletin(user))
"""

from confrere.algorithms.baselines import fedavg, fedsgd, local, ridge_local
from confrere.algorithms.beside import ditto, fine_tuned
from confrere.algorithms.borrowing import EVIDENCE_ROUNDS, evidence
from confrere.algorithms.controlled import scaffold, waffle
from confrere.algorithms.listening import weight_erosion

__all__ = [
    "EVIDENCE_ROUNDS",
    "ditto",
    "evidence",
    "fedavg",
    "fedsgd",
    "fine_tuned",
    "local",
    "ridge_local",
    "scaffold",
    "waffle",
    "weight_erosion",
]

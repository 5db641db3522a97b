"""Rewards: who deserves credit for a user's model, and what each way of paying for it would pay.

shapley    what every silo adds for one user, averaged over all orders of joining
rewards    a ledger of one run: rounds, weights, bytes, influence, rank and value; and shares of a budget
dilution   how strongly a silo's contribution would be mixed with others', and who withdraws
free_rider the ledger of a run that a silo joined which gives nothing
"""

from confrere.dilution import Dilution, dilution
from confrere.insight.credit.ledger import Joined, Ledger
from confrere.insight.credit.rewards import rewards
from confrere.insight.credit.riders import RIDER, RIDES, free_rider
from confrere.insight.credit.schemes import Payout, Scheme
from confrere.insight.credit.shapley import Shapley, Worth, shapley

__all__ = [
    "RIDER",
    "RIDES",
    "Dilution",
    "Joined",
    "Ledger",
    "Payout",
    "Scheme",
    "Shapley",
    "Worth",
    "dilution",
    "free_rider",
    "rewards",
    "shapley",
]

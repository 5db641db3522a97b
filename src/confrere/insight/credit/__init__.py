"""Rewards: who deserves credit for a user's model, and what each way of paying for it would pay.

shapley    what every silo adds for one user, averaged over all orders of joining
rewards    a ledger of one run: rounds, weights, bytes, influence, rank and value; and shares of a budget
dilution   how strongly a silo's contribution would be mixed with others', and who withdraws
"""

from confrere.dilution import Dilution, dilution
from confrere.insight.credit.ledger import Joined, Ledger
from confrere.insight.credit.rewards import rewards
from confrere.insight.credit.schemes import Payout, Scheme
from confrere.insight.credit.shapley import Shapley, Worth, shapley

__all__ = ["Dilution", "Joined", "Ledger", "Payout", "Scheme", "Shapley", "Worth", "dilution", "rewards", "shapley"]

"""Dilution: how strongly what a silo gives is mixed with what others give, before training; and who withdraws."""

from confrere.dilution.dilution import Dilution, Limit, dilution

__all__ = ["Dilution", "Limit", "dilution"]

"""Data: silos of rows, and the data sets that come with the library."""

from confrere.data.silos import Silo, Silos
from confrere.data.titanic import titanic

__all__ = ["Silo", "Silos", "titanic"]

"""Data: silos of rows, the ways to split them, and the data sets that come with the library."""

from confrere.data import splits
from confrere.data.bundled import breast_cancer, diabetes
from confrere.data.ebola import ebola_synthetic
from confrere.data.heart_disease import heart_disease
from confrere.data.notes import DataWarning
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.data.titanic import titanic

__all__ = [
    "DataWarning",
    "Silo",
    "Silos",
    "breast_cancer",
    "diabetes",
    "ebola_synthetic",
    "heart_disease",
    "splits",
    "titanic",
]

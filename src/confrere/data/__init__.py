"""Data: silos of rows, the ways to split them, and the data sets that come with the library."""

from confrere.data import splits
from confrere.data.bundled import breast_cancer, diabetes
from confrere.data.cifar10 import cifar10
from confrere.data.ebola import ebola_synthetic
from confrere.data.fmi import fmi, fmi_coordinates
from confrere.data.heart_disease import heart_disease
from confrere.data.label_picture import label_picture
from confrere.data.mnist import fashion_mnist, mnist
from confrere.data.notes import DataWarning
from confrere.data.silo import Silo
from confrere.data.silos import Silos
from confrere.data.titanic import titanic

__all__ = [
    "DataWarning",
    "Silo",
    "Silos",
    "breast_cancer",
    "cifar10",
    "diabetes",
    "ebola_synthetic",
    "fashion_mnist",
    "fmi",
    "fmi_coordinates",
    "heart_disease",
    "label_picture",
    "mnist",
    "splits",
    "titanic",
]

"""Networks of silos, each with a model of its own, coupled by generalised total variation.

Jung: Federated Learning: From Theory to Practice (2024), chapters 2 to 8, is "the book" here; numbers of equations,
propositions and algorithms are its own. Where it errs, the code has what is right, and says so.
"""

from confrere.networks import bounds
from confrere.networks.accelerated import accelerated_fedgd, extreme_eigenvalues
from confrere.networks.asynchronous import async_fedgd
from confrere.networks.autoencoder import Autoencoder, autoencoder
from confrere.networks.descent import fedgd, inverse, inverse_root, single_model, within
from confrere.networks.diagnosis import Diagnosis, augmented, diagnose, online_gd, ridge
from confrere.networks.discrepancy import (
    class_shares,
    distances_between,
    fitted_parameters,
    gradients_at,
    label_overlap,
    latent_vectors,
    mean_labels,
    mixture_parameters,
)
from confrere.networks.failing import Faulty, faulty_fedgd
from confrere.networks.flavours import (
    Vertical,
    by_category,
    cluster_models,
    clusters,
    explainability,
    explainable,
    spectral_vectors,
    vertical,
)
from confrere.networks.halo import partition
from confrere.networks.lasso_loop import network_lasso
from confrere.networks.learning import least_discrepant, nearest_by, of_degree
from confrere.networks.loops import Run, Stop, decrease, fixed_count, near_enough, small_gradient
from confrere.networks.network import Network
from confrere.networks.predictors import Predictors, predictor_step, relax_predictors
from confrere.networks.problem import GTVMin
from confrere.networks.relaxation import fedavg, fedrelax
from confrere.networks.sharded import own_nodes, solve_sharded
from confrere.networks.statistics import Quadratic
from confrere.networks.stochastic import fedsgd

__all__ = [
    "Autoencoder",
    "Diagnosis",
    "Faulty",
    "GTVMin",
    "Network",
    "Predictors",
    "Quadratic",
    "Run",
    "Stop",
    "Vertical",
    "accelerated_fedgd",
    "async_fedgd",
    "augmented",
    "autoencoder",
    "bounds",
    "by_category",
    "class_shares",
    "cluster_models",
    "clusters",
    "decrease",
    "diagnose",
    "distances_between",
    "explainability",
    "explainable",
    "extreme_eigenvalues",
    "faulty_fedgd",
    "fedavg",
    "fedgd",
    "fedrelax",
    "fedsgd",
    "fitted_parameters",
    "fixed_count",
    "gradients_at",
    "inverse",
    "inverse_root",
    "label_overlap",
    "latent_vectors",
    "least_discrepant",
    "mean_labels",
    "mixture_parameters",
    "near_enough",
    "nearest_by",
    "network_lasso",
    "of_degree",
    "online_gd",
    "own_nodes",
    "partition",
    "predictor_step",
    "relax_predictors",
    "ridge",
    "single_model",
    "small_gradient",
    "solve_sharded",
    "spectral_vectors",
    "vertical",
    "within",
]

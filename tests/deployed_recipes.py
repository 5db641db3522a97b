"""Every algorithm that a study can name, as a study of four sites: to be run deployed and in the simulator."""

from confrere.deploy.study import Deployed, known_algorithms
from tests.hospitals import study

USER = 'user = "cedar"'
EDGES = 'network = [["ash", "birch", 1.0], ["birch", "cedar", 0.5], ["cedar", "elm", 2.0]]'
NETWORK = 'model = "mlp"\nhidden = [5]'
NORMED = f"{NETWORK}\nnorm = true"
BATCHES = "lr = 0.2, batch = 8"

# name -> its options, and what else the study says
RECIPES: dict[str, tuple[str, str]] = {
    "auto": ("", ""),
    "evidence": ('candidates = ["pair", "joint"]', USER),
    "local": (BATCHES, ""),
    "ridge_local": ("ridge = 0.5", ""),
    "fedsgd": ("lr = 0.2", ""),
    "fedavg": (f"{BATCHES}, momentum = 0.9, weight_decay = 0.01, l2 = 0.01, prior = {{ birch = 0.5 }}", ""),
    "fedopt": (f'{BATCHES}, server = "yogi"', ""),
    "fedprox": (f"{BATCHES}, mu = 0.5", ""),
    "pfedme": ("lr = 0.1, pull = 5.0, beta = 0.8, inner_steps = 3, batch = 8", ""),
    "per_fedavg": ("lr = 0.2, inner_lr = 0.3, batch = 8", ""),
    "scaffold": (f"{BATCHES}, momentum = 0.5", ""),
    "waffle": (BATCHES, USER),
    "weight_erosion": ("lr = 0.5, p_d = 0.05, batch = 8", USER),
    "fine_tuned": (f"{BATCHES}, tune_steps = 3", ""),
    "ditto": (f"{BATCHES}, pull = 0.5", ""),
    "apfl": (f"{BATCHES}, alpha = 0.4", ""),
    "model_interpolation": (BATCHES, ""),
    "data_interpolation": ("lr = 0.2, own_share = 0.3", USER),
    "featurised": (BATCHES, ""),
    "fedper": (f'{BATCHES}, keep = ["b"]', ""),
    "fedrep": (f"{BATCHES}, head_epochs = 2", NETWORK),
    "fedbn": (BATCHES, NORMED),
    "multi_task": ("lr = 0.2, pull = 0.5", ""),
    "ifca": (BATCHES, ""),
    "clustered": (f"{BATCHES}, eps1 = 0.6, eps2 = 0.3, gamma = 0.0", ""),
    "fedamp": (f"{BATCHES}, attention = 0.8, pull = 0.5", ""),
    "fedfomo": (BATCHES, ""),
    "gtv_gd": ("lr = 0.1, alpha = 0.3", EDGES),
    "gtv_sgd": ("lr = 0.1, alpha = 0.3, batch = 8", EDGES),
    "gtv_async": ("lr = 0.1, alpha = 0.3", EDGES),
    "gtv_relax": ("alpha = 0.3, steps = 6, l2 = 0.5", EDGES),
    "fedavg_prox": ("eta = 0.5, steps = 6", ""),
}  # fmt: skip
assert set(RECIPES) == set(known_algorithms())


def study_with(name: str, double: bool) -> Deployed:
    """A study of ten rounds."""
    options, more = RECIPES[name]
    return study(name, options, f"{more}\ndouble = {str(double).lower()}")


def has_linear_model(name: str) -> bool:
    """Whether its study is of a linear model."""
    return "mlp" not in RECIPES[name][1]

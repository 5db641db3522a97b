from . import clients, data, mixers, models, stopping, testing, weights
from .algorithms import evidence, fedavg, fedsgd, fine_tuned, local, ridge_local, weight_erosion
from .core import (
    Algorithm,
    Batch,
    Block,
    Client,
    Ctx,
    Geometry,
    Inbox,
    Mixed,
    Mixer,
    Part,
    Recipe,
    Rule,
    State,
    Weights,
    federate,
    weighted,
)
from .data import Silos
from .history import History
from .program import Setup, rollout
from .simulate import simulate
from .stopping import Cone, cone

__version__: str

__all__ = [
    "Algorithm",
    "Batch",
    "Block",
    "Client",
    "Cone",
    "Ctx",
    "Geometry",
    "History",
    "Inbox",
    "Mixed",
    "Mixer",
    "Part",
    "Recipe",
    "Rule",
    "Setup",
    "Silos",
    "State",
    "Weights",
    "clients",
    "cone",
    "data",
    "evidence",
    "fedavg",
    "federate",
    "fedsgd",
    "fine_tuned",
    "local",
    "mixers",
    "models",
    "ridge_local",
    "rollout",
    "simulate",
    "stopping",
    "testing",
    "weight_erosion",
    "weighted",
    "weights",
]

from . import clients, data, mixers, models, report, stopping, testing, weights
from .algorithms import (
    ditto,
    evidence,
    fedavg,
    fedsgd,
    fine_tuned,
    local,
    ridge_local,
    scaffold,
    waffle,
    weight_erosion,
)
from .answers import Answer, personalise
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
from .estimator import PersonalizedClassifier, PersonalizedRegressor
from .history import History
from .program import Setup, rollout
from .simulate import simulate
from .stopping import Cone, cone
from .study import Study, StudyResult

__version__: str

__all__ = [
    "Algorithm",
    "Answer",
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
    "PersonalizedClassifier",
    "PersonalizedRegressor",
    "Recipe",
    "Rule",
    "Setup",
    "Silos",
    "State",
    "Study",
    "StudyResult",
    "Weights",
    "clients",
    "cone",
    "data",
    "ditto",
    "evidence",
    "fedavg",
    "federate",
    "fedsgd",
    "fine_tuned",
    "local",
    "mixers",
    "models",
    "personalise",
    "report",
    "ridge_local",
    "rollout",
    "scaffold",
    "simulate",
    "stopping",
    "testing",
    "waffle",
    "weight_erosion",
    "weighted",
    "weights",
]

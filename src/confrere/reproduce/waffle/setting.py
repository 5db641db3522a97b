"""What a cell of the table is about."""

from typing import Any, Literal, NamedTuple, get_args

from confrere import data as data_sets
from confrere import models
from confrere.data.silos import Silos
from confrere.models import Model

Data = Literal["mnist", "fashion_mnist", "cifar10"]
ModelName = Literal["softmax", "lenet5", "dla"]
DISTRIBUTIONS = ("A", "B", "C", "A*", "B*")
SHAPES = {"mnist": (28, 28, 1), "fashion_mnist": (28, 28, 1), "cifar10": (32, 32, 3)}
BATCH = {"mnist": 32, "fashion_mnist": 32, "cifar10": 128}  # as in the paper
ALICE = 0


class Setting(NamedTuple):
    """Data, model and sizes of one run. The seed deals out images, permutes labels, starts the model and shuffles."""

    data: Data = "mnist"
    distribution: str = "A"
    model: ModelName = "softmax"
    agents: int = 10
    rows: int = 6000
    rounds: int = 100
    lr: float = 0.1
    seed: int = 1
    width: int | None = None  # of the DLA
    batch_rows: int | None = None  # of a step; None: as in the paper

    @property
    def batch(self) -> int:
        """Rows of a step."""
        return BATCH[self.data] if self.batch_rows is None else self.batch_rows

    @property
    def momentum(self) -> dict[str, Any]:
        """Momentum and weight decay, which the paper has for CIFAR-10 only."""
        return {"momentum": 0.9, "weight_decay": 5e-4} if self.data == "cifar10" else {}

    def facts(self) -> dict[str, Any]:
        """All of it as plain words and numbers; of a batch only what differs from the paper's."""
        facts = self._asdict()
        return {name: value for name, value in facts.items() if name != "batch_rows" or value is not None}


def check(setting: Setting) -> None:
    """Refuse words that mean nothing here."""
    for name, known in (("data", get_args(Data)), ("distribution", DISTRIBUTIONS), ("model", get_args(ModelName))):
        value = getattr(setting, name)
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def silos_of(setting: Setting) -> Silos:
    """The agents' images, Alice first."""
    source = getattr(data_sets, setting.data)
    return source(setting.distribution, agents=setting.agents, rows=setting.rows, seed=setting.seed)


def model_of(setting: Setting) -> Model:
    """The model; softmax regression starts from zero."""
    shape = SHAPES[setting.data]
    if setting.model == "lenet5":
        return models.lenet5(shape)
    if setting.model == "dla":
        return models.dla(shape) if setting.width is None else models.dla(shape, width=setting.width)
    return models.logistic("zero")

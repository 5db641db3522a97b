"""What leaves the silos while algorithms run, for the record of an answer."""

import jax.numpy as jnp
import numpy as np

from confrere.data.silos import Silos
from confrere.data.source import Shared
from confrere.history import History
from confrere.models import Model
from confrere.program import Setup, expected_traffic, numbers
from confrere.study.cases import Case, train_block
from confrere.study.contenders import Contender
from confrere.study.runner import initial


def in_one_run(silos: Silos, history: History) -> tuple[Shared, ...]:
    """The messages of a run, as counted."""
    sent = history.bytes_up.sum(axis=0) // number_size()
    what = f"messages of {history.rounds} rounds of {history.algorithm}"
    return tuple(Shared(silos.names[i], what, int(count), "training") for i, count in enumerate(sent) if count > 0)


def in_runs(case: Case, model: Model, contender: Contender, tuning: int, training: int) -> tuple[Shared, ...]:
    """The messages of several runs of an algorithm: to tune it on folds of the user's rows, and to train."""
    hyper = numbers(contender.candidates[0] | ({"user": case.user} if contender.personal else {}))
    params = initial(model, 0, case.shape.features, case.shape.outputs)
    up, _, reserved, _ = expected_traffic(Setup(contender.make, model), hyper, params, train_block(case, model))
    count = up // number_size() * contender.rounds * (tuning + training)
    what = f"messages of {contender.rounds} rounds of {contender.name}, run {tuning + training} times"
    why = f"{tuning} runs to tune it, {training} to train" if tuning else "training"
    senders = [i for i, rows in enumerate(case.silos.sizes("train")) if rows and not (reserved and i == case.user)]
    return tuple(Shared(case.silos.names[i], what, count, why) for i in senders if count)


def number_size() -> int:
    """Bytes of a number in a message."""
    return np.dtype(jnp.result_type(float)).itemsize

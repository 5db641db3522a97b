"""The runner: the cells of one algorithm, tuned by cross-validation and then measured on the test rows."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from confrere.core import Tree
from confrere.models import Model
from confrere.program import Setup, expected_traffic, numbers
from confrere.simulation.inputs import params_spec
from confrere.study.blocks import Size, block_size, run_blocks
from confrere.study.cases import Case, Folds, Others, Shape, cross_folds, train_block, whole_run
from confrere.study.cell import Cell
from confrere.study.contenders import Contender
from confrere.study.engine import Curves, Program, Runs
from confrere.study.tuning import Choice, choose, fold_scores

Progress = Callable[[int, int], None]
MOST_CASES = 32  # that are finished together
WORK = 1 << 29  # multiplications of rows with parameters in such a piece: about a second's work on two cores


class Settings(NamedTuple):
    """What all cells of a study have in common."""

    model: Model
    metrics: tuple[str, ...]
    criterion: str
    tune: str | None
    folds: int
    others: Others
    shared_batches: bool
    memory: int

    def tunes(self, contender: Contender) -> bool:
        """Whether there is anything to choose: several candidates, or the round."""
        several = len(contender.candidates) > 1 or (contender.rounds > 1 and not contender.settled)
        return self.tune == "cv" and several

    def experiments(self, contender: Contender) -> int:
        """How many experiments a cell of this algorithm takes."""
        return self.folds * len(contender.candidates) + 2 if self.tunes(contender) else 1


class Counter:
    """How many experiments are done."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total, self.done = progress, total, 0

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


def initial(model: Model, seed: int, features: int, outputs: int) -> Tree:
    """The model before round 1: the same for all algorithms and users of a seed."""
    return model.init(jax.random.fold_in(jax.random.key(seed), 0), features, outputs)


def case_key(algorithm: str, user: int, seed: int, shared: bool) -> jax.Array:
    """The key of a case; of the seed alone if batches are shared."""
    key = jax.random.key(seed)
    if shared:
        return key
    return jax.random.fold_in(jax.random.fold_in(key, zlib.crc32(algorithm.encode()) & 0x7FFFFFFF), user + 1)


def compute(
    settings: Settings, contender: Contender, cases: Sequence[Case], count: Counter
) -> Iterator[tuple[Case, Cell]]:
    """Every case with its cell, shape by shape and piece by piece: what is stored in between is not lost."""
    for shape in dict.fromkeys(case.shape for case in cases):
        alike = [case for case in cases if case.shape == shape]
        most = min(len(alike), piece_size(settings, contender, shape))
        for first in range(0, len(alike), most):
            yield from piece(settings, contender, shape, alike[first : first + most], count, most)


def piece_size(settings: Settings, contender: Contender, shape: Shape) -> int:
    """How many cases are finished together, and so lost if a run is cut off: about a second's work.

    It follows from shapes alone, so that a run that goes on has the pieces of a run at once; and is at least one case
    for every device.
    """
    spec = params_spec(settings.model, shape.features, shape.outputs)
    parameters = sum(a.size for a in jax.tree.leaves(spec)) * (shape.features if contender.make.whole else 1)
    case = settings.experiments(contender) * contender.rounds * shape.silos * shape.rows * parameters
    devices = len(jax.local_devices())
    return min(MOST_CASES, max(1, WORK // (case * devices)) * devices)


def piece(
    settings: Settings, contender: Contender, shape: Shape, cases: Sequence[Case], count: Counter, most: int
) -> Iterator[tuple[Case, Cell]]:
    """Some cases of one shape, tuned and measured; `most` is the size of the largest piece."""
    choices = cross_validate(settings, contender, shape, cases, count, most)
    picked = [(0,) if choice is None else (choice.last, choice.best) for choice, _ in choices]
    runs = [runs_of(settings, contender, case, whole_run, which) for case, which in zip(cases, picked, strict=True)]
    found = curves_of(settings, contender, shape, runs, 1, len(picked[0]), settings.metrics, count, most)
    sent = bytes_per_round(settings.model, contender, cases[0])
    for case, (choice, scores), curves in zip(cases, choices, found, strict=True):
        yield case, cell_of(contender, case, choice, scores, curves, sent)


def cross_validate(
    settings: Settings, contender: Contender, shape: Shape, cases: Sequence[Case], count: Counter, most: int,
    always: bool = False,
) -> list[tuple[Choice | None, np.ndarray]]:  # fmt: skip
    """For every case what was chosen, and the scores of all candidates and rounds [P, R + 1].

    Where there is nothing to choose, nothing is run, unless the scores are wanted for themselves (`always`).
    """
    if not always and not settings.tunes(contender):
        return [(None, np.zeros((0, 0)))] * len(cases)
    everything = tuple(range(len(contender.candidates)))
    held_out = lambda case, model: cross_folds(case, model, settings.folds)  # noqa: E731
    runs = [runs_of(settings, contender, case, held_out, everything) for case in cases]
    found: list[tuple[Choice | None, np.ndarray]] = []
    metrics, folds = (settings.criterion,), settings.folds
    for case, curves in zip(
        cases, curves_of(settings, contender, shape, runs, folds, len(everything), metrics, count, most), strict=True
    ):
        rows = held_out(case, settings.model).count
        scores = case.in_own_units(
            settings.criterion, fold_scores(curves.metrics[settings.criterion], rows, settings.criterion)
        )
        found.append((choose(scores, settings.criterion), scores))
    return found


def size_of(
    settings: Settings, contender: Contender, shape: Shape, folds: int, candidates: int, metrics: int, most: int
) -> Size:
    """How many cases are run at a time, and what of them side by side."""
    spec = params_spec(settings.model, shape.features, shape.outputs)
    devices = len(jax.local_devices())
    size = block_size(
        shape, folds, candidates, sum(a.size for a in jax.tree.leaves(spec)), (contender.rounds + 1) * (metrics + 2),
        most, settings.memory, devices,
    )  # fmt: skip
    if contender.make.whole:  # curvatures and factorisations keep a processor busy by themselves
        size = size._replace(group=1, groups=-(-most // devices))
    return size


def side_by_side(settings: Settings, contender: Contender, shape: Shape) -> list[tuple[int, bool, bool]]:
    """What runs side by side, in tuning and in the run that is reported: programs that differ in it round differently.

    Cases, folds and candidates. It follows from the shapes, unless the memory limit allows less.
    """
    runs = [(1, 1, len(settings.metrics))]
    if settings.tunes(contender):
        runs = [(settings.folds, len(contender.candidates), 1), (1, 2, len(settings.metrics))]
    sizes = [size_of(settings, contender, shape, *numbers, most=1) for numbers in runs]
    return [(size.group, *size.side_by_side) for size in sizes]


def curves_of(
    settings: Settings, contender: Contender, shape: Shape, runs: Sequence[Callable[[], Runs]], folds: int,
    candidates: int, metrics: tuple[str, ...], count: Counter, most: int,
) -> Iterator[Curves]:  # fmt: skip
    """The curves of all runs, block by block; a last piece that is smaller runs in the program of the others."""
    size = size_of(settings, contender, shape, folds, candidates, len(metrics), most)
    program = Program(
        contender.make, settings.model, metrics, contender.rounds, contender.personal, settings.shared_batches,
        size.side_by_side, contender.settled,
    )  # fmt: skip
    return run_blocks(program, size, runs, lambda cases: count.add(cases * folds * candidates))


def runs_of(
    settings: Settings,
    contender: Contender,
    case: Case,
    folds: Callable[[Case, Model], Folds],
    candidates: Sequence[int],
) -> Callable[[], Runs]:
    """The experiments of one case, made when they are needed."""

    def make() -> Runs:
        params = initial(settings.model, case.seed, case.shape.features, case.shape.outputs)
        precision = np.dtype(jax.tree.leaves(params)[0].dtype)
        chosen = [contender.candidates[c] for c in candidates]
        key = case_key(contender.name, case.user, case.seed, settings.shared_batches)
        return Runs(
            train=train_block(case, settings.model),
            folds=folds(case, settings.model),
            user=np.int32(case.user),
            params=jax.tree.map(np.asarray, params),
            key=np.asarray(jax.random.key_data(key)),
            hyper={name: np.array([c[name] for c in chosen], precision) for name in chosen[0]},
            number=np.array(candidates, np.int32),
        )

    return make


def bytes_per_round(model: Model, contender: Contender, case: Case) -> tuple[int, int]:
    """What one silo, and what all, send and receive in a round; from shapes alone."""
    hyper = numbers(contender.candidates[0] | ({"user": 0} if contender.personal else {}))
    params = initial(model, 0, case.shape.features, case.shape.outputs)
    up, down, reserved, _ = expected_traffic(Setup(contender.make, model), hyper, params, train_block(case, model))
    taking_part = sum(rows > 0 for rows in case.silos.sizes("train"))
    each = up + down - reserved
    if not reserved:
        return each, each * taking_part
    return max(each, down), each * (taking_part - 1) + down  # the user only listens


def cell_of(
    contender: Contender, case: Case, choice: Choice | None, scores: np.ndarray, curves: Curves, sent: tuple[int, int]
) -> Cell:
    """A cell from what its experiments gave."""
    chosen = (0,) if choice is None else (choice.last, choice.best)
    rounds = (contender.rounds,) if choice is None else (contender.rounds, choice.round)
    return Cell(
        algorithm=contender.name,
        user=case.name,
        seed=case.seed,
        train_rows=case.train_rows,
        test_rows=case.test_rows,
        hyper=tuple(contender.candidates[c] for c in chosen),
        round=rounds,
        score=tuple(
            float(scores[c, r]) if choice is not None else float("nan") for c, r in zip(chosen, rounds, strict=True)
        ),
        curves={name: case.in_own_units(name, np.asarray(values[0], float)) for name, values in curves.metrics.items()},
        partners=np.asarray(curves.partners[0], np.int64),
        borrowed=np.asarray(curves.borrowed[0], float),
        bytes_each=sent[0],
        bytes_total=sent[1],
        tried=scores,
    )

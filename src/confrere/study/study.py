"""`Study`: algorithms x users x seeds x numbers."""

import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from confrere._version import __version__
from confrere.checks import check_counts
from confrere.core import Recipe, Tree
from confrere.data.silos import Silos
from confrere.models import Model, metrics_of
from confrere.program import Setup, numbers, start, traffic
from confrere.simulate import check_words, params_spec
from confrere.study.blocks import ask_for_all_cores, block_size, run_blocks
from confrere.study.cases import Case, Folds, Others, Shape, cases_of, cross_folds, seeded_silos, train_block, whole_run
from confrere.study.cell import Cell
from confrere.study.contenders import Contender, contenders, with_baselines
from confrere.study.engine import Curves, Program, Runs
from confrere.study.result import StudyResult
from confrere.study.store import Store, fingerprint
from confrere.study.tuning import Choice, choose, fold_scores

ROUNDS = 30
Progress = Callable[[int, int], None]


class Study:
    """Algorithms compared for every user, over seeds, each with its numbers tuned on the user's training rows only.

    Args:
        silos: Silos, or a function that makes them from a seed. Where there are no test rows, seed s sets half of
            every silo's rows aside with `silos.split(test=0.5, seed=s)`; where there are, they stay, and the seed drives
            the start and the batches only.
        algorithms: a list, or a dict with names, of functions such as `confrere.fedavg`, whose user and open numbers
            the study fills in, or of ready recipes, whose numbers stay unless the grid names them.
        users: "all", or silos by name or place.
        seeds: a count, or the seeds themselves.
        grid: values to try, {"lr": [...], "p_d": [...]} for all algorithms that have such a number, and
            {"fedavg": {"lr": [...]}} for one. A required `lr` that is not named is tried at 0.03, 0.1, ... 10.
        rounds: one number for all, or a dict by algorithm (30 for those it leaves out).
        tune: "cv": every combination of the values is run on `folds` folds of the user's training rows (stratified; as
            many as rows if those are fewer), all others' rows taking part; None: one value each.
        criterion: what tuning looks at; by default log_loss, or rmse in a regression.
        metrics: what is measured on the user's test rows; by default all that mean something for the task.
        others: "all": the other silos train on all their rows, as the Weight Erosion paper did; "train": on their
            training rows only.
        baselines: whether the ridge optimum of the user's own rows is added where there is one.
        shared_batches: all experiments of a seed draw the same batches, and the drawing is done once for all values of
            the grid. Differences between algorithms and values then have less noise (common random numbers), but no
            longer show how much a result owes to the luck of the draw within a seed; means are unchanged. Off by default:
            every experiment draws its own.
        intervals: "resplit": seeds split the same rows anew, so that their results are not independent, and intervals
            are widened after Nadeau and Bengio (2003); "plain": seeds are independent; by default what the silos suggest.
        memory: bytes that a block of experiments may take, about.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> rows = [(X, X[:, 0] > 0) for X in rng.normal(size=(3, 40, 2))]
    >>> silos = cf.Silos.from_arrays(rows, names=["a", "b", "c"])
    >>> study = cf.Study(silos, cf.models.logistic(), {"alone": cf.local, "together": cf.fedsgd}, seeds=2, rounds=5,
    ...                  users=["a"], grid={"lr": [0.1, 1]}, baselines=False)
    >>> result = study.run()
    >>> result.table("accuracy").select("algorithm", "user", "n").rows()
    [('alone', 'a', 2), ('together', 'a', 2)]
    """

    def __init__(
        self,
        silos: Silos | Callable[[int], Silos],
        model: Model,
        algorithms: Sequence[Any] | Mapping[str, Any],
        users: Literal["all"] | Iterable[int | str] = "all",
        seeds: int | Iterable[int] = 10,
        grid: Mapping[str, Any] | None = None,
        *,
        rounds: int | Mapping[str, int] = ROUNDS,
        tune: Literal["cv"] | None = "cv",
        folds: int = 5,
        criterion: str | None = None,
        metrics: Sequence[str] | None = None,
        others: Others = "all",
        baselines: bool = True,
        shared_batches: bool = False,
        intervals: Literal["resplit", "plain"] | None = None,
        memory: float = 1e9,
    ):
        if not isinstance(model, Model):
            raise TypeError(f"a model is what e.g. confrere.models.logistic() returns, not {type(model).__name__}")
        if tune not in ("cv", None):
            raise ValueError(f"tune must be 'cv' or None, not {tune!r}")
        check_counts(folds=folds)
        if folds < 2:
            raise ValueError(f"there must be 2 folds or more, not {folds}")
        self.silos, self.model, self.users, self.others = silos, model, users, others
        self.seeds = seed_numbers(seeds)
        self.metrics = tuple(metrics_of(model.task) if metrics is None else metrics)
        self.criterion = ("log_loss" if model.task == "classification" else "rmse") if criterion is None else criterion
        check_words(f"metrics of a {model.task}", self.metrics, metrics_of(model.task))
        check_words(f"criterion of a {model.task}", [self.criterion], metrics_of(model.task))
        extra: dict[str, int] = {}
        if baselines:
            algorithms, extra = with_baselines(algorithms, model)
        per_name = {**extra, **rounds} if isinstance(rounds, Mapping) else extra
        default = ROUNDS if isinstance(rounds, Mapping) else rounds
        self.contenders = contenders(algorithms, {} if grid is None else grid, per_name, default)
        self.tune, self.folds, self.shared_batches = tune, folds, bool(shared_batches)
        self.intervals, self.memory = intervals, int(memory)
        check_single_values(self.contenders, tune)

    def run(
        self, store: str | os.PathLike[str] | None = None, progress: Progress | None = None
    ) -> StudyResult:
        """Run what is not in the store yet. `progress` is called with (experiments done, experiments in all)."""
        ask_for_all_cores()
        kept = Store(store)
        seeded = list(seeded_silos(self.silos, self.seeds))
        users, left_out = self.chosen_users([silos for _, silos in seeded])
        cases = [c for seed, s in seeded for c in cases_of(seed, s, users, self.others, self.model, self.folds)]
        cells: dict[tuple[str, int, int], Cell] = {}
        missing: list[tuple[Contender, list[Case]]] = []
        for contender in self.contenders:
            for case in cases:
                found = kept.get(self.fingerprint(contender, case))
                if found is not None:
                    cells[contender.name, case.user, case.seed] = found
            missing.append((contender, [c for c in cases if (contender.name, c.user, c.seed) not in cells]))
        count = Counter(progress, sum(len(some) * self.experiments(c) for c, some in missing))
        for contender, some in missing:
            for case, cell in self.compute(contender, some, count):
                cells[contender.name, case.user, case.seed] = cell
                kept.put(self.fingerprint(contender, case), cell)
        ordered = tuple(cells[c.name, u, s] for c in self.contenders for u in users for s in self.seeds)
        return StudyResult(self.config(seeded[0][1], users, left_out), ordered)

    def key(self, algorithm: str, user: int, seed: int, candidate: int = 0, fold: int = 0) -> jax.Array:
        """The key of one experiment; fold 0 is the run that is reported. `simulate` gives the same run with it."""
        if self.shared_batches:
            return jax.random.key(seed)
        of_case = case_key(algorithm, user, seed, shared=False)
        return jax.random.fold_in(jax.random.fold_in(of_case, fold), candidate)

    def start(self, seed: int, silos: Silos) -> Tree:
        """The model before round 1: the same for all algorithms and users of a seed."""
        return self.initial(seed, len(silos.feature_names), self.outputs(silos))

    def initial(self, seed: int, features: int, outputs: int) -> Tree:
        """The model before round 1, for so many features and outputs."""
        return self.model.init(jax.random.fold_in(jax.random.key(seed), 0), features, outputs)

    def outputs(self, silos: Silos) -> int:
        """How many outputs the model has."""
        return silos.classes() if self.model.task == "classification" else 1

    def chosen_users(self, every: Sequence[Silos]) -> tuple[list[int], list[str]]:
        """The places of the users, and the names of silos that "all" leaves out, having no rows to train or test on."""
        first = every[0]

        def lacks(user: int) -> str | None:
            for part in ("train", "test"):
                if any(s.sizes(part)[user] == 0 for s in every):
                    return "training rows" if part == "train" else "test rows"
            return None

        if isinstance(self.users, str) and self.users == "all":
            kept = [u for u in range(len(first)) if lacks(u) is None]
            left_out = [name for u, name in enumerate(first.names) if u not in kept]
            if not kept:
                raise ValueError("no silo has both training and test rows in every seed: nothing can be reported")
            if left_out:
                warnings.warn(f"without test or training rows, and so not studied: {', '.join(left_out)}", stacklevel=3)
            return kept, left_out
        if isinstance(self.users, str):
            raise ValueError(f"users must be 'all' or a list of silos, not {self.users!r}")
        chosen = list(dict.fromkeys(first.index(u) for u in self.users))
        if not chosen:
            raise ValueError("no user given: say users='all' or name some silos")
        for u in chosen:
            if (what := lacks(u)) is not None:
                raise ValueError(f"silo {first.names[u]!r} has no {what} in some seed, so nothing honest can be reported")
        return chosen, []

    def tuned(self, contender: Contender) -> bool:
        """Whether there is anything to choose: several candidates, or the round."""
        return self.tune == "cv" and (len(contender.candidates) > 1 or contender.rounds > 1)

    def experiments(self, contender: Contender) -> int:
        """How many experiments a cell of this algorithm takes."""
        return self.folds * len(contender.candidates) + 2 if self.tuned(contender) else 1

    def compute(self, contender: Contender, cases: Sequence[Case], count: "Counter"):
        """Every case with its cell, shape by shape."""
        for shape in dict.fromkeys(c.shape for c in cases):
            alike = [c for c in cases if c.shape == shape]
            choices, tried = self.cross_validate(contender, shape, alike, count)
            runs = [self.runs(contender, c, whole_run, list(chosen)) for c, chosen in zip(alike, picks(choices), strict=True)]
            done = self.curves(contender, shape, runs, 1, len(next(picks(choices))), self.metrics, count)
            each, total = self.bytes_per_round(contender, shape, alike[0])
            for case, choice, scores, curves in zip(alike, choices, tried, done, strict=True):
                yield case, cell_of(contender, case, choice, scores, curves, each, total)

    def cross_validate(
        self, contender: Contender, shape: Shape, cases: Sequence[Case], count: "Counter"
    ) -> tuple[list[Choice | None], list[np.ndarray]]:
        """For every case what was chosen, and the scores of all candidates and rounds."""
        if not self.tuned(contender):
            return [None] * len(cases), [np.zeros((0, 0))] * len(cases)
        everything = list(range(len(contender.candidates)))
        folds = lambda case, model: cross_folds(case, model, self.folds)  # noqa: E731
        runs = [self.runs(contender, case, folds, everything) for case in cases]
        scores = []
        curves = self.curves(contender, shape, runs, self.folds, len(everything), (self.criterion,), count)
        for case, found in zip(cases, curves, strict=True):
            rows = cross_folds(case, self.model, self.folds).count
            scores.append(fold_scores(found.metrics[self.criterion], rows, self.criterion))
        return [choose(s, self.criterion) for s in scores], scores

    def curves(self, contender: Contender, shape: Shape, runs, folds: int, candidates: int, metrics, count: "Counter"):
        """The curves of all runs, block by block."""
        spec = params_spec(self.model, shape.features, shape.outputs)
        size = block_size(
            shape, folds, candidates, sum(a.size for a in jax.tree.leaves(spec)),
            (contender.rounds + 1) * (len(metrics) + 2), len(runs), self.memory, len(jax.local_devices()),
        )  # fmt: skip
        program = Program(
            contender.make, self.model, metrics, contender.rounds, contender.personal, self.shared_batches, size.side_by_side
        )
        return run_blocks(program, size, runs, lambda cases: count.add(cases * folds * candidates))

    def runs(
        self, contender: Contender, case: Case, folds: Callable[[Case, Model], Folds], candidates: Sequence[int]
    ) -> Callable[[], Runs]:
        """The experiments of one case, made when they are needed."""

        def make() -> Runs:
            params = self.initial(case.seed, case.shape.features, case.shape.outputs)
            precision = np.dtype(jax.tree.leaves(params)[0].dtype)
            chosen = [contender.candidates[c] for c in candidates]
            hyper = {name: np.array([c[name] for c in chosen], precision) for name in chosen[0]}
            key = case_key(contender.name, case.user, case.seed, self.shared_batches)
            return Runs(
                train_block(case, self.model), folds(case, self.model), np.int32(case.user),
                jax.tree.map(np.asarray, params), np.asarray(jax.random.key_data(key)), hyper,
                np.array(candidates, np.int32),
            )  # fmt: skip

        return make

    def bytes_per_round(self, contender: Contender, shape: Shape, case: Case) -> tuple[int, int]:
        """What one silo, and what all, send and receive in a round; from shapes alone."""
        found: list[tuple[int, int]] = []
        setup = Setup(contender.make, self.model)
        hyper = contender.candidates[0] | ({"user": 0} if contender.personal else {})

        def look(block):
            params = self.initial(0, shape.features, shape.outputs)
            values = numbers(hyper)
            found.append(traffic(setup, values, start(setup, values, params, block), block))

        jax.eval_shape(look, train_block(case, self.model))
        each = int(sum(found[0]))
        return each, each * sum(rows > 0 for rows in case.silos.sizes("train"))

    def fingerprint(self, contender: Contender, case: Case) -> str:
        """A hash of all that determines a cell."""
        spec = params_spec(self.model, case.shape.features, case.shape.outputs)
        return fingerprint({
            "data": case.digest, "others": self.others, "user": case.user, "seed": case.seed,
            "model": [self.model.name, self.model.task, self.model.loss.__module__, str(jax.tree.map(jnp.shape, spec))],
            "algorithm": [contender.name, contender.make.maker, contender.static, contender.candidates, contender.rounds],
            "tuning": [self.tune, self.folds, self.criterion], "metrics": self.metrics, "shared": self.shared_batches,
            "versions": versions(), "precision": str(jnp.result_type(float)), "key": str(jax.config.jax_default_prng_impl),
        })  # fmt: skip

    def config(self, silos: Silos, users: Sequence[int], left_out: Sequence[str]) -> dict[str, Any]:
        """What was studied, in words and numbers."""
        return {
            "model": self.model.name, "task": self.model.task,
            "algorithms": {
                c.name: {"static": {k: str(v) for k, v in c.static.items()}, "rounds": c.rounds, "candidates": c.candidates}
                for c in self.contenders
            },
            "users": [silos.names[u] for u in users], "left_out": list(left_out), "seeds": list(self.seeds),
            "metrics": list(self.metrics), "tune": self.tune, "folds": self.folds, "criterion": self.criterion,
            "others": self.others, "shared_batches": self.shared_batches,
            "intervals": self.intervals or suggested_intervals(self.silos, silos),
            "silos": list(silos.names), "features": list(silos.feature_names),
            "origin": silos.origin, "kind": silos.kind, "versions": versions(), "precision": str(jnp.result_type(float)),
        }  # fmt: skip


class Counter:
    """How many experiments are done."""

    def __init__(self, progress: Progress | None, total: int):
        self.progress, self.total, self.done = progress, total, 0

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.progress is not None:
            self.progress(self.done, self.total)


def picks(choices: Sequence[Choice | None]):
    """The candidates to run in the end: those of both choices, or the only one."""
    return iter([(0,) if c is None else (c.last, c.best) for c in choices])


def cell_of(contender: Contender, case: Case, choice: Choice | None, scores, curves: Curves, each: int, total: int) -> Cell:
    """A cell from what its experiments gave."""
    final = Choice(0, 0, contender.rounds) if choice is None else choice
    chosen = (0,) if choice is None else (final.last, final.best)
    rounds = (contender.rounds,) if choice is None else (contender.rounds, final.round)
    found = tuple(float("nan") if choice is None else float(scores[c, r]) for c, r in zip(chosen, rounds, strict=True))
    return Cell(
        contender.name, case.name, case.seed, case.train_rows, case.test_rows,
        tuple(contender.candidates[c] for c in chosen), rounds, found,
        {name: np.asarray(values[0], float) for name, values in curves.metrics.items()},
        np.asarray(curves.partners[0], np.int64), np.asarray(curves.borrowed[0], float), each, total, scores,
    )  # fmt: skip


def case_key(algorithm: str, user: int, seed: int, shared: bool) -> jax.Array:
    """The key of a case; of the seed alone if batches are shared."""
    key = jax.random.key(seed)
    if shared:
        return key
    return jax.random.fold_in(jax.random.fold_in(key, zlib.crc32(algorithm.encode()) & 0x7FFFFFFF), user + 1)


def seed_numbers(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Seeds from a count or a list; each once."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        if seeds < 1:
            raise ValueError(f"there must be 1 seed or more, not {seeds}")
        return tuple(range(int(seeds)))
    if isinstance(seeds, str | bool) or not isinstance(seeds, Iterable):
        raise TypeError(f"seeds must be a count or a list of whole numbers, not {seeds!r}")
    chosen = tuple(seeds)
    if not chosen or any(not isinstance(s, int | np.integer) or isinstance(s, bool) or s < 0 for s in chosen):
        raise ValueError(f"seeds must be whole numbers, 0 or more, not {chosen!r}")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"each seed may occur once, but some do more often: {chosen!r}")
    return tuple(int(s) for s in chosen)


def check_single_values(every: Sequence[Contender], tune: str | None) -> None:
    """Without tuning there is nothing to choose with."""
    for c in every:
        if tune is None and len(c.candidates) > 1:
            open_ = sorted(k for k in c.candidates[0] if len({p[k] for p in c.candidates}) > 1)
            raise ValueError(
                f"{c.name} has {len(c.candidates)} candidates for {', '.join(open_)}: with tune=None give one value each, "
                f"e.g. grid={{{c.name!r}: {{{open_[0]!r}: {c.candidates[0][open_[0]]:g}}}}}"
            )


def suggested_intervals(given: Silos | Callable[[int], Silos], silos: Silos) -> str:
    """Whether seeds split the same rows anew, or are independent."""
    if isinstance(given, Silos):
        return "plain" if sum(given.sizes("test")) else "resplit"
    return "plain" if silos.kind == "synthetic" else "resplit"


def versions() -> dict[str, str]:
    """The versions that may change a last digit."""
    return {"confrere": __version__, **{name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")}}

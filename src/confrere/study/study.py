"""`Study`: algorithms x users x seeds x numbers."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from confrere._version import __version__
from confrere.budget import bytes_of, in_words, rounds_within, why_stopped
from confrere.checks import WrongField, check_counts, check_numbers
from confrere.core import Tree
from confrere.data.silos import Silos
from confrere.models import Model, metrics_of
from confrere.simulation.inputs import check_words, outputs_of, params_spec
from confrere.study.blocks import ask_for_all_cores
from confrere.study.cases import Case, Others, cases_of, seeded_silos
from confrere.study.cell import Cell
from confrere.study.contenders import Contender, contenders, with_baselines
from confrere.study.result import StudyResult
from confrere.study.runner import (
    Counter,
    Progress,
    Settings,
    bytes_per_round,
    case_key,
    compute,
    initial,
    side_by_side,
)
from confrere.study.sharing import gathered, own_share
from confrere.study.store import Store, fingerprint
from confrere.study.users import chosen_users, seed_numbers
from confrere.study.written import algorithm_in_full, model_in_full

ROUNDS = 30
Spent = Callable[[str, int, float], None]  # algorithm, experiments, seconds that processors worked


class Plan(NamedTuple):
    """The silos of the first seed, the users' places, who is left out for want of rows, and all cases."""

    silos: Silos
    users: list[int]
    left_out: list[str]
    cases: list[Case]


class Study:
    """Algorithms compared for every user, over seeds, each with its numbers tuned on the user's training rows only.

    Args:
        model: what is trained. A network learns amounts standardised by the mean and deviation of all training labels;
            errors are told in the labels' own units.
        silos: Silos, or a function that makes them from a seed. Where there are no test rows, seed s sets half of
            every silo's rows aside with `silos.split(test=0.5, seed=s)`; where there are, they stay, and the seed
            drives the start and the batches only.
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
            longer show how much a result owes to the luck of the draw within a seed; means are unchanged. Off by
            default: every experiment draws its own.
        intervals: "resplit": seeds split the same rows anew, so that their results are not independent, and intervals
            are widened after Nadeau and Bengio (2003); "plain": seeds are independent. By default what the silos
            suggest: functions of the seed split the same rows anew unless they are synthetic.
        memory: bytes that a block of experiments may take, about. A limit that lets fewer experiments run side by side
            may change the last bits of a result, so that a store keeps such cells apart.
        budget: bytes that all silos together may send and receive in one run of an algorithm, a number or words such as
            "2MB"; it runs for as many rounds as that allows. Runs that only tune it are not counted.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> rows = [(X, X[:, 0] > 0) for X in rng.normal(size=(3, 40, 2))]
    >>> silos = cf.Silos.from_arrays(rows, names=["a", "b", "c"])
    >>> study = cf.Study(
    ...     silos,
    ...     cf.models.logistic(),
    ...     {"alone": cf.local, "together": cf.fedsgd},
    ...     seeds=2,
    ...     rounds=5,
    ...     users=["a"],
    ...     grid={"lr": [0.1, 1]},
    ...     baselines=False,
    ... )
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
        budget: Any = None,
    ):
        if intervals not in ("resplit", "plain", None):
            raise ValueError(f"intervals must be 'resplit', 'plain' or None, not {intervals!r}")
        self.silos, self.users, self.seeds, self.intervals = silos, users, seed_numbers(seeds), intervals
        self.budget, self.stopped = bytes_of(budget), dict[str, str]()
        self.planned: Plan | None = None
        self.settings = settings_of(model, metrics, criterion, tune, folds, others, shared_batches, memory)
        if baselines:
            algorithms = with_baselines(algorithms, model)
        by_name, default = (rounds, ROUNDS) if isinstance(rounds, Mapping) else ({}, rounds)
        self.contenders = contenders(algorithms, {} if grid is None else grid, by_name, default)
        check_single_values(self.contenders, tune)

    def run(
        self, store: str | os.PathLike[str] | None = None, progress: Progress | None = None, spent: Spent | None = None
    ) -> StudyResult:
        """Run what is not in the store yet, a folder where every cell is kept under a hash of all that determines it.

        `progress` is called with (experiments done, experiments in all) after every block of them. After
        `jax.distributed.initialize` every process runs its share, and all return the whole result. `spent`
        is told of every algorithm how many experiments were run, and how many seconds processors worked for them.
        """
        silos, users, left_out, cases = self.plan()
        cells = self.cells(cases, Store(store), progress, spent)
        ordered = tuple(cells[c.name, u, seed] for c in self.contenders for u in users for seed in self.seeds)
        return StudyResult(self.config(silos, users, left_out), ordered)

    def plan(self) -> Plan:
        """What `run` will do, made once; users and budgets that cannot be are refused here, before anything is run."""
        if self.planned is None:
            ask_for_all_cores()
            seeded = list(seeded_silos(self.silos, self.seeds))
            users, left_out = chosen_users(self.users, [silos for _, silos in seeded])
            model, others, folds = self.settings.model, self.settings.others, self.settings.folds
            cases = [case for seed, silos in seeded for case in cases_of(seed, silos, users, others, model, folds)]
            if self.budget is not None:
                self.contenders = [self.affordable(c, cases) for c in self.contenders]
            self.planned = Plan(seeded[0][1], users, left_out, cases)
        return self.planned

    def affordable(self, contender: Contender, cases: Sequence[Case]) -> Contender:
        """The algorithm for as many rounds as the budget allows in every case."""
        limit, asked = int(self.budget or 0), contender.rounds
        each = max(bytes_per_round(self.settings.model, contender, case)[1] for case in cases)
        allowed = rounds_within(limit, np.full(asked, each))
        if allowed == asked:
            return contender
        if allowed == 0 or contender.settled:
            needed = in_words(each * (asked if contender.settled else 1))
            what = f"its {asked} rounds" if contender.settled and asked > 1 else "one round"
            raise WrongField(
                ("study", "budget"),
                f"{what} of {contender.name} would take {needed}, more than the budget of {in_words(limit)}: allow "
                "more, or leave this algorithm out",
            )
        self.stopped[contender.name] = why_stopped(limit, allowed, asked)
        return for_rounds(contender, allowed)

    def cells(
        self, cases: Sequence[Case], store: Store, progress: Progress | None, spent: Spent | None = None
    ) -> dict[tuple[str, int, int], Cell]:
        """All cells, by algorithm, user and seed: from the store, or computed and put there."""
        own = own_share(cases)
        every = {(c.name, case.user, case.seed): (c, case) for c in self.contenders for case in own}
        keys = {place: self.fingerprint(*of) if store.folder is not None else "" for place, of in every.items()}
        found = {place: store.get(key) for place, key in keys.items()}
        missing = [[case for case in own if found[c.name, case.user, case.seed] is None] for c in self.contenders]
        work = list(zip(self.contenders, missing, strict=True))
        count = Counter(progress, sum(len(some) * self.settings.experiments(c) for c, some in work))
        for c, some in work:
            with timed(spent if some else None, c.name, len(some) * self.settings.experiments(c)):
                for case, cell in compute(self.settings, c, some, count):
                    place = (c.name, case.user, case.seed)
                    found[place] = cell
                    store.put(keys[place], cell)
        return gathered({place: cell for place, cell in found.items() if cell is not None})

    def key(self, algorithm: str, user: int, seed: int, candidate: int = 0, fold: int = 0) -> jax.Array:
        """The key of one experiment; fold 0 is the run that is reported. `simulate` gives the same run with it."""
        if self.settings.shared_batches:
            return jax.random.key(seed)
        of_case = case_key(algorithm, user, seed, shared=False)
        return jax.random.fold_in(jax.random.fold_in(of_case, fold), candidate)

    def start(self, seed: int, silos: Silos) -> Tree:
        """The model before round 1: the same for all algorithms and users of a seed."""
        return initial(self.settings.model, seed, len(silos.feature_names), outputs_of(self.settings.model, silos))

    def fingerprint(self, contender: Contender, case: Case) -> str:
        """A hash of all that determines a cell."""
        model, metrics, criterion, tune, folds, others, shared, _ = self.settings
        shapes = jax.tree.map(jnp.shape, params_spec(model, case.shape.features, case.shape.outputs))
        return fingerprint({
            "data": [case.digest, others, case.user, case.seed],
            "model": [model.name, model.task, str(shapes), model_in_full(model, case.shape)],
            "algorithm": [contender.name, contender.make.maker, contender.static, contender.candidates],
            "steps": algorithm_in_full(contender, model, case.shape),
            "blocks": side_by_side(self.settings, contender, case.shape),
            "run": [contender.rounds, shared, metrics, tune, folds, criterion],
            "machine": [versions(), str(jnp.result_type(float)), jax.default_backend()],
        })  # fmt: skip

    def config(self, silos: Silos, users: Sequence[int], left_out: Sequence[str]) -> dict[str, Any]:
        """What was studied, in words and numbers."""
        model, metrics, criterion, tune, folds, others, shared, _ = self.settings
        return {
            "model": model.name, "task": model.task, "metrics": list(metrics), "criterion": criterion, "tune": tune,
            "folds": folds, "others": others, "shared_batches": shared,
            "algorithms": {
                c.name: {
                    "static": {k: str(v) for k, v in c.static.items()}, "rounds": c.rounds,
                    "candidates": [dict(point) for point in c.candidates],
                    **({"stopped": self.stopped[c.name]} if c.name in self.stopped else {}),
                }
                for c in self.contenders
            },
            "users": [silos.names[u] for u in users], "left_out": list(left_out), "seeds": list(self.seeds),
            "intervals": self.intervals or suggested_intervals(self.silos, silos),
            "silos": list(silos.names), "features": list(silos.feature_names), "origin": silos.origin,
            "kind": silos.kind, "versions": versions(), "precision": str(jnp.result_type(float)),
            **({} if self.budget is None else {"budget": self.budget}),
        }  # fmt: skip


def settings_of(
    model: Model, metrics: Sequence[str] | None, criterion: str | None, tune: str | None, folds: int, others: Others,
    shared_batches: bool, memory: float,
) -> Settings:  # fmt: skip
    """What the caller asked for; what cannot be right is refused."""
    if not isinstance(model, Model):
        raise TypeError(f"a model is what e.g. confrere.models.logistic() returns, not {type(model).__name__}")
    if tune not in ("cv", None):
        raise ValueError(f"tune must be 'cv' or None, not {tune!r}")
    check_counts(folds=folds)
    check_numbers(least=1, memory=memory)
    if folds < 2:
        raise ValueError(f"there must be 2 folds or more, not {folds}")
    known = metrics_of(model.task)
    chosen = ("log_loss" if model.task == "classification" else "rmse") if criterion is None else criterion
    measured = known if metrics is None else metrics
    check_words(f"metrics of a {model.task}", measured, known)
    check_words(f"criterion of a {model.task}", [chosen], known)
    if not measured:
        raise ValueError(f"metrics: name one at least, out of {', '.join(known)}")
    return Settings(model, tuple(measured), chosen, tune, folds, others, bool(shared_batches), int(memory))


def check_single_values(every: Sequence[Contender], tune: str | None) -> None:
    """Without tuning there is nothing to choose with."""
    for c in every:
        if tune is None and len(c.candidates) > 1:
            open_ = sorted(k for k in c.candidates[0] if len({p[k] for p in c.candidates}) > 1)
            raise ValueError(
                f"{c.name} has {len(c.candidates)} candidates for {', '.join(open_)}: with tune=None give one "
                f"value each, e.g. grid={{{c.name!r}: {{{open_[0]!r}: {c.candidates[0][open_[0]]:g}}}}}"
            )


def suggested_intervals(given: Silos | Callable[[int], Silos], silos: Silos) -> str:
    """Whether seeds split the same rows anew, or are independent."""
    if isinstance(given, Silos):
        return "plain" if sum(given.sizes("test")) else "resplit"
    return "plain" if silos.kind == "synthetic" else "resplit"


@contextlib.contextmanager
def timed(spent: Spent | None, algorithm: str, experiments: int) -> Iterator[None]:
    """Tell how long processors worked meanwhile."""
    began = time.process_time()
    yield
    if spent is not None:
        spent(algorithm, experiments, time.process_time() - began)


def for_rounds(contender: Contender, rounds: int) -> Contender:
    """The algorithm for other rounds, told so where it asks how many there are."""
    if "rounds" not in contender.static:
        return contender._replace(rounds=rounds)
    told = tuple((k, rounds if k == "rounds" else v) for k, v in contender.make.static)
    static = {**contender.static, "rounds": rounds}
    return contender._replace(rounds=rounds, make=contender.make._replace(static=told), static=static)


def versions() -> dict[str, str]:
    """The versions that may change a last digit."""
    return {"confrere": __version__, **{name: metadata.version(name) for name in ("jax", "jaxlib", "numpy")}}

"""`personalise`: one call from silos and a user to an answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from confrere.algorithms import evidence
from confrere.answers import words
from confrere.answers.affording import afforded, check_once
from confrere.answers.answer import Answer, warn_of
from confrere.answers.auto import by_evidence
from confrere.answers.average import by_average
from confrere.answers.comparison import compared
from confrere.answers.named import asked_for
from confrere.answers.predictor import Predictor
from confrere.answers.ready import told_of
from confrere.answers.replicas import Run, by_runs
from confrere.answers.sent import in_runs
from confrere.answers.teaching import taught_by
from confrere.answers.trials import FOLDS, ROUNDS, Progress, best, case_of, settings, trials
from confrere.answers.worth import doubts_about
from confrere.borrowing.summary import MIN_CELL, SHARES, Share
from confrere.budget import bytes_of
from confrere.checks import check_counts, check_numbers
from confrere.data.silo import AS_CLASSES, signs_only
from confrere.data.silos import Silos
from confrere.dilution import Limit, dilution
from confrere.models import Model, linear, logistic
from confrere.recipe import Recipe
from confrere.simulate import simulate
from confrere.simulation.inputs import check_types
from confrere.study.units import told_of_labels

if TYPE_CHECKING:
    from confrere.answers.replicas import Replicas
    from confrere.insight.explanations.guesses import Guesses

MOST_CLASSES = 20


def personalise(
    silos: Silos,
    user: int | str,
    algorithm: Any = "auto",
    model: Model | None = None,
    *,
    share: Share = "full",
    min_cell: int = MIN_CELL,
    prevalence: float | None = None,
    others: Literal["all", "train"] = "all",
    grid: Mapping[str, Any] | None = None,
    rounds: int = ROUNDS,
    min_dilution: Limit = None,
    seed: int = 0,
    budget: Any = None,
    progress: Progress | None = None,
    guesses: "Guesses | None" = None,
    guess_weight: float = 1.0,
    uncertainty: int = 0,
) -> Answer:
    """The model that is best for one silo's own population, whose data it listened to, and why.

    Args:
        user: the silo, by name or place. Its test rows, if it has any, take no part.
        algorithm: "auto", or a named algorithm ("weight_erosion", `confrere.fedavg`, a ready recipe), whose open
            numbers are tuned on the user's training rows.
        model: by default logistic regression for classes and linear regression for numbers. For these, "auto" is
            evidence-weighted borrowing; for others, an average over cross-validated candidates.
        share: what silos send for "auto": "full", or less ("diagonal", "parameters", "sum"; see `evidence`).
        min_cell: of a column of two values that fewer rows of a silo have, and of a silo with fewer rows, nothing is
            said (with linear models).
        prevalence: how frequent the second class is among the user's patients, where its rows cannot tell.
        others: "all": the other silos use all their rows; "train": their training rows only.
        min_dilution: silos whose contribution could be mixed with less of others' than this withdraw before anything is
            trained, see `insight.dilution`: for named algorithms. `answer.withdrawn` tells who did, and why.
        budget: bytes that all silos together may send and receive for this model, tuning included: a number, or words
            such as "2MB". A named algorithm is run for as many rounds as that allows.
        grid, rounds, seed: for named algorithms, models without curvature, and the comparison.
        guesses, guess_weight: what a clinician expects of some cases (`confrere.insight.Guesses`), and how much the
            user's loss heeds that: 0 not at all, 1 as much as all its rows, large: the guesses alone.
        uncertainty: how often rows and silos are drawn anew, so that `answer.model.predict_interval` can say how sure
            each prediction is; 50 is enough for most. Calibrated on the user's validation rows, or on rows left out.

    >>> import numpy as np, confrere as cf
    >>> rng = np.random.default_rng(0)
    >>> def hospital(rows, flipped=False):
    ...     X = rng.normal(size=(rows, 3))
    ...     y = X @ [1.0, -1.0, 0.5] + rng.logistic(size=rows) > 0
    ...     return X, y != flipped
    >>> silos = cf.Silos.from_arrays([hospital(60), hospital(300), hospital(300, True)], names=["a", "b", "c"])
    >>> answer = cf.personalise(silos, user="a")
    >>> answer.unrelated
    ('c',)
    >>> answer.weights["b"] > 0.3 > answer.weights["c"]
    True
    >>> answer.model.predict_proba(np.zeros((1, 3))).shape
    (1, 2)
    """
    model = fitting_model(silos) if model is None else model
    check_types(model, silos)
    place = silos.index(user)
    check_asked(prevalence, rounds, min_cell, others, share)
    name = silos.names[place]
    silos, withdrawn = who_stay(silos, place, algorithm, others, min_dilution)
    place = silos.index(name)
    linear_auto = algorithm == "auto" and model.name in ("linear", "logistic")
    if not linear_auto:
        check_unused(share, min_cell, prevalence)
    check_extras(uncertainty, guess_weight)
    taught = taught_by(guesses, guess_weight, silos, place, model, algorithm, linear_auto, others)
    seen = silos.for_user(place, others)
    grid = {} if grid is None else grid

    def answer(
        predictor: Predictor, score: float | None = None, auto: Recipe | None = None, replicate: Any = None, **said: Any
    ) -> Answer:
        predictor = Predictor.of(model, list(predictor.members), silos, place, predictor.units)
        if uncertainty:
            predictor = with_uncertainty(predictor, replicate(uncertainty, seed), silos, place)
        said["notes"] = (*said["notes"], *taught.notes)

        def compare():
            given = (silos, place, model, others, seed, rounds, grid, predictor, progress)
            return compared(*given, auto=auto, score=score, moved=prevalence is not None)

        rows = seen.sizes("train")[place]
        shared = (*silos.shared, *said.pop("shared"))
        left = tuple(f"{silo} withdrew before training: {why}." for silo, why in withdrawn.items())
        said |= {"notes": (*said["notes"], *left), "findings": " ".join([said["findings"], *left])}
        return Answer(
            user=silos.names[place], model=predictor, rows=rows, shared=shared, compare=compare, key=int(seed),
            withdrawn=withdrawn, **said,
        )  # fmt: skip

    limit = bytes_of(budget)
    if algorithm != "auto":
        return named_answer(
            answer, taught.silos, place, algorithm, taught.model, others, grid, rounds, seed, limit, progress
        )
    if linear_auto:
        if limit is not None:
            once = evidence(place, share, min_cell)
            check_once(case_of(silos, place, model, others, seed), model, once, limit)
        rows = max(len(s.y) for s in silos.silos) if others == "all" else max(silos.sizes("train"))
        heard = by_evidence(seen, place, model, share, min_cell, prevalence, rows, taught.beside)
        said = heard._asdict()
        predictor = Predictor.of(model, [(1.0, said.pop("params"))], silos, place)
        recipe = evidence(place, share, min_cell)
        made = answer(predictor, auto=recipe, algorithm="auto (evidence-weighted borrowing)", **said)
    else:
        if limit is not None:
            raise ValueError("budget: 'auto' tries several algorithms with this model; name one, and it keeps to it")
        made = averaged_answer(answer, taught.silos, place, taught.model, others, seed, rounds, progress)
    warn_of(made)
    return made


def who_stay(
    silos: Silos, user: int, algorithm: Any, others: Literal["all", "train"], limit: Limit
) -> tuple[Silos, dict[str, str]]:
    """The silos that stay, as their contributions are diluted enough, and why the others withdraw."""
    if limit is None:
        return silos, {}
    name = silos.names[user]
    if algorithm == "auto":
        raise ValueError(
            f"min_dilution: with 'auto' every silo tells {name} about its rows by itself, diluted by nobody: name an "
            "algorithm, such as 'fedavg' or 'weight_erosion'"
        )
    found = dilution(silos.for_user(user, others), asked_for(algorithm), user=user, min_dilution=limit)
    staying = [n for n in silos.names if n not in found.withdrawn]
    if found.withdrawn and len(staying) < 2:
        first, why = next(iter(found.withdrawn.items()))
        raise ValueError(f"min_dilution: nobody is left to learn with; silo {first!r} leaves because {why}")
    return (silos.only(staying) if found.withdrawn else silos), dict(found.withdrawn)


def with_uncertainty(predictor: Predictor, replicas: "Replicas", silos: Silos, user: int) -> Predictor:
    """The same model, which also tells how sure it is."""
    from confrere.insight.explanations.uncertainty import calibrated

    own = silos[user]
    return replace(predictor, uncertainty=calibrated(predictor, replicas, own.rows("train"), own.rows("validation")))


def averaged_answer(answer, silos: Silos, user: int, model: Model, others, seed: int, rounds: int, progress) -> Answer:
    """The average over candidates, in words."""
    found = by_average(silos, user, model, others, seed, rounds, progress)
    what = "log-loss" if model.task == "classification" else "RMSE"
    name = silos.names[user]
    doubts = doubts_about(model.task, name, silos[user].rows("train")[1], found.score, found.alone)
    notes = (*doubts.guess, *doubts.alone)
    findings = " ".join([
        words.whom_it_listened_to(name, found.weights, 0.0),
        *words.who_was_left_out(found.relevance, (), (), found.weights),
        words.was_it_worth_it(found.score, found.alone, what),
        *notes,
    ])  # fmt: skip
    return answer(
        Predictor.of(model, found.members, silos, user, found.units), algorithm="auto (average over candidates)",
        weights=found.weights, prior=0.0, relevance=found.relevance, candidates=found.candidates,
        scores=found.scores | {"alone": found.alone}, refused=(), silent=(),
        shared=found.shared, findings=findings,
        notes=notes, cautions=doubts.guess, make_history=lambda: found.history,
        replicate=lambda count, seed: by_runs(found.runs, model, found.seen, user, count, seed),
    )  # fmt: skip


def named_answer(
    answer, silos: Silos, user: int, algorithm: Any, model: Model, others, grid, rounds: int, seed: int,
    limit: int | None, progress: Progress | None,
) -> Answer:  # fmt: skip
    """A named algorithm at its best numbers, in words."""
    given = asked_for(algorithm)
    case, how = case_of(silos, user, model, others, seed), settings(model, others)
    name = given.name if isinstance(given, Recipe) else given.__name__
    allowed = afforded(case, model, name, given, grid, rounds, limit)
    [some] = trials(case, how, {name: given}, grid, allowed.rounds, progress)
    trial = best(some)
    history = simulate(trial.recipe(user), model, case.silos, trial.contender.rounds, seed, user=user, metrics=())
    shared = (*told_of_labels(case.silos, model), *in_runs(case, model, trial.contender, FOLDS * len(some), 1))
    said = told_of(history, silos, user, trial.score) | {"shared": shared}
    said["replicate"] = lambda count, seed: by_runs(
        [Run(trial.recipe(user), trial.contender.rounds)], model, case.silos, user, count, seed
    )
    said["notes"] = (*said["notes"], *([f"{name} was {allowed.why}."] if allowed.why else []))
    return answer(Predictor.of(model, [(1.0, history.personal(user))], silos, user, case.units), trial.score, **said)


def fitting_model(silos: Silos) -> Model:
    """Logistic regression for classes, linear regression for numbers; labels -1 and 1 may be either: refused."""
    if not isinstance(silos, Silos):
        raise TypeError(f"silos are what e.g. Silos.from_arrays(...) returns, not {type(silos).__name__}")
    if silos.label_names is not None:
        return logistic()
    if silos.encoding is not None:  # a table's classes have names: these are amounts
        return linear()
    if signs_only(s.y for s in silos.silos):
        raise ValueError(
            f"the labels are -1 and 1. If they are classes, {AS_CLASSES}; if amounts, say model=models.linear()"
        )
    whole = all((s.y == s.y.astype(int)).all() and s.y.min() >= 0 and s.y.max() < MOST_CLASSES for s in silos.silos)
    return logistic() if whole else linear()


def check_unused(share: Share, min_cell: int, prevalence: float | None) -> None:
    """Refuse what only "auto" with a linear model heeds: what is asked for is done or refused, never passed over."""
    given = {"share": share != "full", "min_cell": min_cell != MIN_CELL, "prevalence": prevalence is not None}
    asked = [name for name, there in given.items() if there]
    if asked:
        raise ValueError(
            f"{' and '.join(asked)}: only algorithm='auto' with a linear or logistic model heeds it; "
            "to name the method, give a ready recipe such as confrere.evidence(share='diagonal', min_cell=10)"
        )


def check_extras(uncertainty: int, guess_weight: float) -> None:
    """Refuse numbers of draws and weights of guesses that cannot be right."""
    check_numbers(guess_weight=guess_weight)
    check_counts(0, uncertainty=uncertainty)
    if uncertainty == 1:
        raise ValueError("uncertainty: from a single draw nothing can be told; 50 is enough for most")


def check_asked(prevalence: float | None, rounds: int, min_cell: int, others: str, share: str) -> None:
    """Refuse numbers that cannot be right."""
    check_counts(rounds=rounds, min_cell=min_cell)
    if others not in ("all", "train"):
        raise ValueError(f"others must be 'all' or 'train', not {others!r}")
    if share not in SHARES:
        raise ValueError(f"share must be one of {', '.join(SHARES)}, not {share!r}")
    if prevalence is not None:
        check_numbers(prevalence=prevalence)
        if not 0 < prevalence < 1:
            raise ValueError(f"prevalence is a share, above 0 and below 1, not {prevalence!r}")

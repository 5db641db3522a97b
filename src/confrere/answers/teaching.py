"""What a clinician's guesses change about a training: the silos and the model, or rows beside the user's."""

from typing import TYPE_CHECKING, Any, NamedTuple

from confrere.borrowing.glm import Rows
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.plural import plural
from confrere.recipe import Recipe
from confrere.study.units import units_of

if TYPE_CHECKING:
    from confrere.insight.explanations.guesses import Guesses

UNTAUGHT = ("ridge_local", "evidence", "featurised")  # they look at rows, not at a loss of them alone


class Taught(NamedTuple):
    """What training is given: for algorithms that descend, for those that solve, and what is told about it."""

    silos: Silos
    model: Model
    beside: Rows | None
    notes: tuple[str, ...] = ()


def taught_by(
    guesses: "Guesses | None",
    rho: float,
    silos: Silos,
    user: int,
    model: Model,
    algorithm: Any,
    solved: bool,
    others: Any,
) -> Taught:
    """Training with guesses at weight rho; as it was if there are none, or they have no weight."""
    if guesses is None or rho == 0:
        return Taught(silos, model, None)
    from confrere.insight.explanations.guided import as_rows, flagged, guided

    check_guesses(guesses, silos, model, algorithm)
    note = f"It heeds {plural(len(guesses), 'guess', 'guesses')} of a clinician, with weight {rho:g} beside its rows."
    seen = silos.for_user(user, others)
    if solved:
        return Taught(silos, model, as_rows(guesses, rho, seen.sizes("train")[user], model.task), (note,))
    if model.task == "regression":
        guesses = type(guesses)(guesses.X, units_of(seen, model).standard(guesses.said))
    return Taught(flagged(silos, user), guided(model, guesses, rho), None, (note,))


def check_guesses(guesses: "Guesses", silos: Silos, model: Model, algorithm: Any) -> None:
    """Guesses must be about these features and labels, and the algorithm one that can heed them."""
    name = algorithm.name if isinstance(algorithm, Recipe) else getattr(algorithm, "__name__", algorithm)
    if name in UNTAUGHT:
        raise ValueError(f"{name} cannot heed guesses: use auto, or an algorithm that descends, such as local")
    if guesses.X.shape[1] != len(silos.feature_names):
        raise ValueError(f"the guesses have {guesses.X.shape[1]} features, but the silos {len(silos.feature_names)}")
    wanted = (silos.classes(),) if model.task == "classification" else ()
    if guesses.said.shape[1:] != wanted:
        what = f"{wanted[0]} classes" if wanted else "amounts"
        raise ValueError(
            f"the silos' labels are {what}, but the guesses are not: make them with Guesses.of(X, said, ...)"
        )

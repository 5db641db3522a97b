"""The ledgers of a run: who deserves credit for the model that it made for a user, on the first of its splits."""

from collections.abc import Sequence

from confrere.insight.credit import Ledger, rewards
from confrere.insight.credit.game import Progress
from confrere.report.helping import main_algorithm
from confrere.runs.report import answer_of
from confrere.runs.run import Finished, study_of
from confrere.study.cases import seeded_silos


def run_ledgers(
    finished: Finished,
    users: Sequence[str] | None = None,
    budget: float = 1.0,
    algorithm: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Ledger]:
    """A ledger for every user: of the run's main algorithm, or of another that it compared.

    `seed` is of resampling, and of drawn orders; `progress` is called after every user.
    """
    result, study = finished.result, study_of(finished.config, finished.silos)
    if study.settings.model.name not in ("linear", "logistic"):
        raise ValueError(
            f"the run in {finished.folder} trained networks, whose coalitions have no optimum to go to: give "
            "confrere.insight.rewards a recipe to run with every coalition"
        )
    chosen = list(result.users if not users else dict.fromkeys(users))
    for user in chosen:
        if user not in result.users:
            raise ValueError(f"the run in {finished.folder} has no user {user!r}; it has {', '.join(result.users)}")
    main = algorithm or main_algorithm(result)
    if main not in result.algorithms:
        raise ValueError(f"the run in {finished.folder} has no {main!r}; it has {', '.join(result.algorithms)}")
    [(first, split)] = seeded_silos(finished.silos, study.seeds[:1])
    found: dict[str, Ledger] = {}
    for user in chosen:
        answer = answer_of(study, split, first, user, result, main)
        model, others = study.settings.model, study.settings.others
        found[user] = rewards(split, user, answer, model, budget=budget, others=others, seed=seed)
        if progress is not None:
            progress(len(found), len(chosen))
    return found

"""`confrere train`: a personal model for one silo, saved with all that is needed to use and judge it."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from confrere.algorithm_names import AlgorithmName
from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, progress_bar, start_jax
from confrere.cli.reading import Reading, with_reading


@with_reading
def train(
    data: inputs.DataOrStudy,
    reading: Reading,
    user: Annotated[str, typer.Option(help="The silo for which the model is made.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The folder for the model.", show_default=False)],
    algorithm: Annotated[AlgorithmName, typer.Option(help="auto, or an algorithm by its name.")] = "auto",
    model: inputs.ModelName = "linear",
    budget: inputs.Budget = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="How frequent the second of two classes is, where the user's rows cannot tell.",
            show_default=False,
        ),
    ] = None,
    min_dilution: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Silos withdraw unless at least this share of any model is sure to come from others (not auto).",
            show_default=False,
        ),
    ] = None,
    guesses: Annotated[
        Path | None,
        typer.Option(
            help="A CSV, Parquet or JSON file of cases with a column named guess: what a clinician expects of them.",
            show_default=False,
        ),
    ] = None,
    guess_weight: Annotated[
        float, typer.Option(min=0, help="How much training heeds the guesses; 1: as much as all rows of the user.")
    ] = 1.0,
    uncertainty: Annotated[
        int,
        typer.Option(
            min=0, help="How often rows and silos are drawn anew for intervals of predictions; 0: no intervals."
        ),
    ] = 50,
    validation: Annotated[
        float,
        typer.Option(min=0, max=0.5, help="Share of rows kept to calibrate the intervals; 0: rows left out of draws."),
    ] = 0.0,
    test: Annotated[float, typer.Option(min=0, max=0.9, help="Share of rows kept for testing.")] = 0.25,
    seed: Annotated[int, typer.Option(help="Of the split, and of what is random in training.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is in the folder.")] = False,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """A model for one silo, from its own rows and what the others may tell: saved with its manifest and model card.

    A quarter of every silo's rows is kept for testing; --test 0 trains on all of them.
    """
    with for_people():
        choice = reading.choice(data)
        from confrere.data.choose import check_user
        from confrere.saved.folder import check_target

        check_model(algorithm, model, prevalence)
        check_target(out, force)  # before anything is trained
        silos = inputs.silos_of(data, choice)
        check_user(user, silos.names, choice)
        start_jax()
        from confrere.saved import save_model

        silos = silos.split(test=test, validation=validation, seed=seed) if test + validation > 0 else silos
        heeded = guesses_of(guesses, guess_weight, silos, user, choice.formulas(user))
        with progress_bar("Experiments", hidden=quiet or json) as progress:
            answer = personal_answer(
                silos, user, algorithm, model, prevalence, min_dilution, seed, progress, uncertainty, heeded, budget
            )
        config = {
            "data": list(data),
            "test": test,
            "seed": seed,
            "scale": choice.options.get("scale", "shared"),
            "min_level": choice.options["min_level"],
            "overridden": choice.overridden | decided(algorithm, model, prevalence) | heeded.told(),
            "derive": choice.formulas(user),
        }
        folder = save_model(answer, silos, out, config, replace=force)
        if json:
            print_json(answer.to_dict() | {"folder": str(folder)})
        else:
            show(answer, silos, folder, quiet)


class Heeded(NamedTuple):
    """A clinician's guesses, and how much training heeds them."""

    guesses: Any
    guess_weight: float

    def told(self) -> dict[str, str]:
        """What was decided, in words."""
        return {} if self.guesses is None else {"guesses": f"{len(self.guesses)}, weight {self.guess_weight:g}"}


def guesses_of(file: Path | None, weight: float, silos: Any, user: str, formulas: Any) -> Heeded:
    """The guesses of a file, read as new rows of the user are."""
    if file is None:
        return Heeded(None, weight)
    from confrere.answers.personalise import fitting_model
    from confrere.answers.predictor import Predictor
    from confrere.insight import read_guesses

    model = fitting_model(silos)
    classes = silos.classes() if model.task == "classification" else None
    reader = Predictor.of(model, [], silos, silos.index(user))
    return Heeded(read_guesses(file, reader, classes, formulas=formulas), weight)


def check_model(algorithm: str, model: str, prevalence: float | None) -> None:
    """Refuse a network where only linear models can be had, and a prevalence where nothing heeds it."""
    if model == "mlp" and algorithm == "ridge_local":
        raise ValueError(
            "--algorithm ridge_local is for linear models only, as networks have no ridge optimum: "
            "name another algorithm, or leave --model mlp out"
        )
    if prevalence is not None and (model, algorithm) != ("linear", "auto"):
        raise ValueError("--prevalence is heeded by --algorithm auto with --model linear only: leave it out")


def decided(algorithm: str, model: str, prevalence: float | None) -> dict[str, str]:
    """What the person decided about the model, in words.

    >>> decided("auto", "linear", 0.4)
    {'prevalence': '0.4'}
    """
    asked = (("algorithm", algorithm, "auto"), ("model", model, "linear"), ("prevalence", prevalence, None))
    return {name: str(value) for name, value, usual in asked if value != usual}


def personal_answer(
    silos: Any, user: str, algorithm: str, model: str, prevalence: float | None, min_dilution: float | None, seed: int,
    progress: Any, uncertainty: int = 0, heeded: Heeded | None = None, budget: str | None = None,
) -> Any:  # fmt: skip
    """The answer; what it warns about is in its notes, and is shown there."""
    import warnings

    from confrere import models, personalise
    from confrere.answers import AnswerWarning
    from confrere.answers.personalise import fitting_model

    chosen = fitting_model(silos)
    if model == "mlp":
        chosen = models.mlp(task=chosen.task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswerWarning)
        return personalise(
            silos, user, algorithm, chosen, prevalence=prevalence, others="train", min_dilution=min_dilution, seed=seed,
            budget=budget, progress=progress, uncertainty=uncertainty, **({} if heeded is None else heeded._asdict()),
        )  # fmt: skip


def show(answer: Any, silos: Any, folder: Path, quiet: bool) -> None:
    """The answer in words, and a table of whose data it listened to."""
    from rich.table import Table

    if not quiet:
        for note in silos.notes:
            print(f"note: {note}")
    print(answer.reason)
    table = Table(title=f"Whose data the model for {answer.user} listened to")
    table.add_column("Silo")
    table.add_column("Share of the information", justify="right")
    table.add_column("Relevance", justify="right")
    for name, share in answer.weights.items():
        relevance = answer.relevance.get(name)
        table.add_row(name, f"{share:.0%}", "" if relevance is None else f"{relevance:.2f}")
    console().print(table)
    print(f"Model: {folder}")

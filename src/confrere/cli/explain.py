"""`confrere explain`: why a model listened as it did, in which features silos disagree, what a clinician expected."""

from pathlib import Path
from typing import Annotated, Any

import typer

from confrere.cli import inputs
from confrere.cli.common import console, for_people, print_json, start_jax, status
from confrere.cli.reading import Reading, with_reading
from confrere.cli.report import is_model

MOST_FEATURES = 10  # in a table; --json has all


@with_reading
def explain(
    source: Annotated[
        list[str],
        typer.Argument(help="The folder of a saved model or of a run; or data, as for train.", show_default=False),
    ],
    reading: Reading,
    user: Annotated[
        str | None, typer.Option(help="The silo whose model it is (of a saved model it is known).", show_default=False)
    ] = None,
    about: Annotated[
        list[str] | None, typer.Option(help="Only these other silos; written as for --silos.", show_default=False)
    ] = None,
    guesses: Annotated[
        Path | None,
        typer.Option(
            help="A CSV, Parquet or JSON file of cases with a column named guess: how well does the model agree?",
            show_default=False,
        ),
    ] = None,
    json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Why did the model listen to a silo as it did, and in which features do the two disagree?

    Of a saved model it tells what was kept with it, and how well it agrees with a clinician's guesses. Of a run, or of
    data, it also compares the gradients of the silos, feature by feature, with intervals.
    """
    with for_people():
        hidden = quiet or json
        if len(source) == 1 and is_model(Path(source[0])):
            found = of_model(Path(source[0]), user, inputs.apart(about), guesses)
        else:
            start_jax()
            with status("Explaining", hidden=hidden):
                if len(source) == 1 and is_run(Path(source[0])):
                    answer, silos, formulas = of_run(Path(source[0]), user)
                else:
                    choice = reading.choice(source)
                    answer, silos, formulas = of_data(source, choice, user)
                found = told(answer, silos, inputs.apart(about), guesses, formulas)
        if json:
            print_json(found)
        else:
            show(found, quiet)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run."""
    return (folder / "journal.jsonl").is_file()


def of_model(folder: Path, user: str | None, about: tuple[str, ...], guesses: Path | None) -> dict[str, Any]:
    """What was kept with a saved model, and its agreement with guesses."""
    from confrere.saved.folder import load_model, read_manifest

    manifest = read_manifest(folder)
    if user not in (None, manifest["user"]):
        raise ValueError(f"the model in {folder} is for {manifest['user']!r}, not for {user!r}")
    if not manifest.get("why"):
        raise ValueError(f"{folder} has no reasons: it was saved before they were kept, or its rounds are at a hub")
    found: dict[str, Any] = {"user": manifest["user"], "algorithm": manifest["algorithm"]}
    found["why"] = {name: manifest["why"][name] for name in chosen(about, tuple(manifest["why"]), manifest["user"])}
    if guesses is not None:
        start_jax()
        model = load_model(folder).model
        classes = None if model.model.task == "regression" else len(model.label_names or (0, 1))
        found["guesses"] = agreed(guesses, model, classes, manifest["config"].get("derive"))
    return found


def of_run(folder: Path, user: str | None) -> tuple[Any, Any, Any]:
    """The model of a run's first split for one user, and its silos."""
    from confrere.report.helping import main_algorithm
    from confrere.runs.report import answer_of
    from confrere.runs.run import opened, study_of
    from confrere.study.cases import seeded_silos

    finished = opened(folder)
    users = finished.result.users
    if user is None and len(users) == 1:
        user = users[0]
    if user not in users:
        asked = "--user: say for whom" if user is None else f"the run in {folder} has no user {user!r}"
        raise ValueError(f"{asked}; it has {', '.join(users)}")
    study = study_of(finished.config, finished.silos)
    [(seed, split)] = seeded_silos(finished.silos, study.seeds[:1])
    return answer_of(study, split, seed, user, finished.result, main_algorithm(finished.result)), split, None


def of_data(source: list[str], choice: Any, user: str | None) -> tuple[Any, Any, Any]:
    """A model made from data for one user, as `confrere train` makes it by default."""
    from confrere.cli.train import personal_answer
    from confrere.data.choose import check_user

    if user is None:
        raise ValueError("--user: say for whom")
    silos = inputs.silos_of(source, choice)
    check_user(user, silos.names, choice)
    silos = silos.split(test=0.25, seed=0)
    return personal_answer(silos, user, "auto", "linear", None, None, 0, None), silos, choice.formulas(user)


def told(answer: Any, silos: Any, about: tuple[str, ...], guesses: Path | None, formulas: Any) -> dict[str, Any]:
    """Why, and about what, for every silo that is asked about."""
    from confrere import insight

    model = answer.model
    one = model.params if len(model.members) == 1 and model.model.name in ("linear", "logistic") else None
    found: dict[str, Any] = {"user": answer.user, "algorithm": answer.algorithm, "why": {}, "disagreement": {}}
    for name in chosen(about, silos.names, answer.user):
        found["why"][name] = insight.why(answer, name).to_dict()
        if one is not None:
            found["disagreement"][name] = insight.disagreement(silos, answer.user, name, model.model).to_dict()
    if guesses is not None:
        classes = silos.classes() if model.model.task == "classification" else None
        found["guesses"] = agreed(guesses, model, classes, formulas)
    return found


def chosen(about: tuple[str, ...], names: tuple[str, ...], user: str) -> tuple[str, ...]:
    """The silos to tell about: those named, or all others."""
    from confrere.data.silo import place_of

    return tuple(names[place_of(names, name)] for name in about) or tuple(name for name in names if name != user)


def agreed(guesses: Path, model: Any, classes: int | None, formulas: Any) -> dict[str, Any]:
    """How well a model agrees with the guesses of a file."""
    from confrere.insight import agreement, read_guesses

    return agreement(model, read_guesses(guesses, model, classes, formulas=formulas)).to_dict()


def show(found: dict[str, Any], quiet: bool) -> None:
    """Sentences; a table of rounds where one silo is asked about; a table of features."""
    print(f"The model for {found['user']}: {found['algorithm']}")
    for name, why in found["why"].items():
        print(why["words"][0])
        if len(found["why"]) == 1 and why["adds_up"]:
            console().print(rounds_table(name, why))
    if not quiet:  # what holds for all silos is said once
        for words in dict.fromkeys(words for why in found["why"].values() for words in why["words"][1:]):
            print(words)
    for name, apart in found.get("disagreement", {}).items():
        print(" ".join(apart["words"]))
        if not quiet:
            console().print(parts_table(found["user"], name, apart))
    if "guesses" in found:
        print(" ".join(found["guesses"]["words"]))


def rounds_table(name: str, why: dict[str, Any]) -> Any:
    """The rounds of one silo, with the terms that add up."""
    from rich.table import Table

    sums = "the terms add up to the change" if why["adds_up"] == "change" else "the terms add up to the weight"
    table = Table(title=f"The weight of {name}, round by round: {sums}; exact, so without intervals")
    columns = why["rounds"]
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*(cell(value) for value in row))
    return table


def cell(value: Any) -> str:
    """A value of a table.

    >>> cell(True), cell(3), cell(0.12342), cell(None)
    ('yes', '3', '0.1234', '')
    """
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def parts_table(user: str, name: str, apart: dict[str, Any]) -> Any:
    """Features by their share of the disagreement."""
    from rich.table import Table

    table = Table(title=f"Where the gradients of {user} and {name} differ, at {apart['at']}")
    for column in ("Feature", "Share", "95 % interval", "More than chance"):
        table.add_column(column, justify="left" if column == "Feature" else "right")
    for part in apart["parts"][:MOST_FEATURES]:
        known = part["low"] is not None
        ends = f"{part['low']:.1%} to {part['high']:.1%}" if known else "none"
        table.add_row(part["name"], f"{part['share']:.1%}", ends, "yes" if part["clear"] else "no")
    rest = apart["parts"][MOST_FEATURES:]
    if rest:
        clear = sum(part["clear"] for part in rest)
        table.add_row(f"{len(rest)} others", f"{sum(part['share'] for part in rest):.1%}", "none", f"{clear} of them")
    return table

"""`confrere monitor`: do new rows still look like those that a saved model was trained on?"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from confrere.cli.common import console, for_people, print_json, start_jax
from confrere.cli.inputs import Json
from confrere.cli.predict import Folder, Rows, features_of, rows_of
from confrere.plural import plural


def monitor(
    folder: Folder,
    rows: Rows,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="The verdict alone, without tables.")] = False,
) -> None:
    """How features, the label's rate and calibration have moved since training, and whether to train anew.

    Where the file has the label's column, the model's predictions are compared with it, in the rows that have a label.
    Rows that `confrere predict` would refuse are named, and left out of that comparison.
    """
    with for_people():
        start_jax()
        from confrere.saved import drift, load_model

        saved = load_model(folder)
        X = features_of(saved, rows, misfits="allow")  # what is new is drift, not a mistake
        misfits = misfits_in(saved, rows, len(X))
        news = {f"{misfit.column} ({misfit.kind})": misfit.rows for misfit, _ in misfits}
        found = drift(saved, X, labels_of(saved, rows), news)
        said = [words for _, words in misfits]
        if json:
            print_json({"model": str(folder), "misfits": said} | found.to_dict())
        else:
            print(f"{found.verdict}: {found.reason}")
            if not quiet:
                print("".join(f"- {words}\n" for words in said), end="")
                show(saved, found)


def misfits_in(saved: Any, rows: Any, count: int) -> list[tuple[Any, str]]:
    """The cells for which `predict` refuses rows, as training never saw their like, by column and reason; and in words.

    Such rows are as likely mistakes as news, so that nothing is said about the model by them.
    """
    import numpy as np

    from confrere.data.intake.tidy import Where

    if saved.model.encoding is None:
        return []
    where = Where(saved.model.user, np.arange(count))
    found = saved.model.encoding.misfits(rows_of(saved, rows), silo=saved.model.user)
    return [(misfit, misfit.told(where)) for misfit in found]


def labels_of(saved: Any, rows: Any) -> Any:
    """The labels of new rows as the model counts them, NaN where there is none yet; None if no row has one."""
    import numpy as np

    from confrere.data.intake.read import read

    encoding = saved.manifest["encoding"] or {}
    name = encoding.get("label", "label")
    frame = read(rows)
    if name not in frame.columns:
        return None
    gone = [as_level(value) for value in encoding.get("gone", {}).get(name, ())]
    words = [known_level(value, gone) for value in frame[name].to_list()]
    numbers = np.full(len(words), np.nan)
    for row, word in enumerate(words):
        if word is not None:
            numbers[row] = as_counted(saved, word, f"{rows}: label {name!r}, row {row} (counted from 0)")
    return None if np.isnan(numbers).all() else numbers


def as_counted(saved: Any, word: str, where: str) -> float:
    """One label as the number of its class, or as the amount that it is."""
    if saved.manifest["model"]["task"] == "regression":
        try:
            return finite(word)
        except ValueError:
            raise ValueError(f"{where} is {word!r}, which is no number: mend it, or leave it blank") from None
    names = saved.manifest["labels"] or [str(c) for c in range(len(saved.manifest["reference"]["label"]["counts"]))]
    if word not in names:
        raise ValueError(f"{where} is {word!r}, not {' or '.join(names)}: mend it, or leave it blank")
    return names.index(word)


def finite(word: str) -> float:
    """A number that is not infinite."""
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def known_level(value: Any, gone: Sequence[str]) -> str | None:
    """A label as `as_level` writes it; None if it is missing, blank or one of those that mean that there is none."""
    from confrere.data.intake.tidy import MISSING_WORDS

    word = "" if value is None else as_level(value)
    return None if word.lower() in MISSING_WORDS or word in gone else word


def as_level(value: Any) -> str:
    """A class's name as the intake writes it: whole numbers without a point, true and false in small letters."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text.lower() if text in ("True", "False") else text
    return str(int(number)) if number.is_integer() else text


def show(saved: Any, found: Any) -> None:
    """Tables of what moved."""
    from rich.table import Table

    screen = console()
    rows = plural(found.rows, "row")
    table = Table(title=f"{rows} against the training rows of {saved.manifest['user']}: what moved most")
    for title in ("Feature", "Stability index", "Chance", "Movement"):
        table.add_column(title, justify="left" if title == "Feature" else "right")
    for moved in found.features[:15]:
        table.add_row(moved.feature, f"{moved.index:.3f}", f"{moved.chance:.3g}", moved.movement)
    screen.print(table)
    if found.labels:
        labels = Table(title=f"Predicted and observed, in the {plural(found.labelled, 'row')} with a label")
        for title in ("Label", "In training", "Predicted", "Observed", "z"):
            labels.add_column(title, justify="left" if title == "Label" else "right")
        for told in found.labels:
            labels.add_row(
                told.name, *(f"{v:.3f}" for v in (told.before, told.predicted, told.observed)), f"{told.z:+.1f}"
            )
        screen.print(labels)
        expected = "" if found.expected is None else f" (expected {found.expected:.3f})"
        print(f"Loss on the rows with a label: {found.loss:.3f}{expected}")

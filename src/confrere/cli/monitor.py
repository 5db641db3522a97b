"""`confrere monitor`: do new rows still look like those that a saved model was trained on?"""

from typing import Annotated, Any

import typer

from confrere.cli.common import console, for_people, print_json, start_jax
from confrere.cli.inputs import Json
from confrere.cli.predict import Folder, Rows, features_of


def monitor(
    folder: Folder,
    rows: Rows,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="The verdict alone, without tables.")] = False,
) -> None:
    """How features, the label's rate and calibration have moved since training, and whether to train anew.

    Where the file has the label's column, the model's predictions are compared with it.
    """
    with for_people():
        start_jax()
        from confrere.saved import drift, load_model

        saved = load_model(folder)
        X = features_of(saved, rows, misfits="allow")  # what is new is drift, not a mistake
        found = drift(saved, X, labels_of(saved, rows), news_in(saved, rows))
        if json:
            print_json({"model": str(folder)} | found.to_dict())
        else:
            print(f"{found.verdict}: {found.reason}")
            if not quiet:
                show(saved, found)


def news_in(saved: Any, rows: Any) -> dict[str, int]:
    """In how many rows there is what training never saw, by column and reason."""
    if saved.model.encoding is None:
        return {}
    found = saved.model.encoding.misfits(rows, silo=saved.model.user)
    return {f"{misfit.column} ({misfit.kind})": len(misfit.rows) for misfit in found}


def labels_of(saved: Any, rows: Any) -> Any:
    """The labels of new rows as the model counts them; None if the file has none."""
    import numpy as np

    from confrere.data.intake.read import read

    name = (saved.manifest["encoding"] or {}).get("label", "label")
    frame = read(rows)
    if name not in frame.columns:
        return None
    if saved.manifest["model"]["task"] == "regression":
        numbers = frame[name].cast(float, strict=False)
        if numbers.null_count():
            raise ValueError(f"{rows}: the label {name!r} is no number in {numbers.null_count()} row(s)")
        return numbers.to_numpy()
    names = saved.manifest["labels"]
    words = [as_level(value) for value in frame[name].to_list()]
    if names is None:
        return np.array([int(word) for word in words])
    for row, word in enumerate(words):
        if word not in names:
            raise ValueError(
                f"{rows}: label {name!r}, row {row} (counted from 0) is {word!r}, not {' or '.join(names)}"
            )
    return np.array([names.index(word) for word in words])


def as_level(value: Any) -> str:
    """A class's name as the intake writes it: whole numbers without a point, true and false in small letters."""
    text = str(value).strip()
    try:
        number = float(text)
    except ValueError:
        return text.lower() if text in ("True", "False") else text
    return str(int(number)) if number == int(number) else text


def show(saved: Any, found: Any) -> None:
    """Tables of what moved."""
    from rich.table import Table

    screen = console()
    table = Table(title=f"{found.rows} rows against the training rows of {saved.manifest['user']}: what moved most")
    for title in ("Feature", "Stability index", "Chance", "Movement"):
        table.add_column(title, justify="left" if title == "Feature" else "right")
    for moved in found.features[:15]:
        table.add_row(moved.feature, f"{moved.index:.3f}", f"{moved.chance:.3g}", moved.movement)
    screen.print(table)
    if found.labels:
        labels = Table(title="Predicted and observed")
        for title in ("Label", "In training", "Predicted", "Observed", "z"):
            labels.add_column(title, justify="left" if title == "Label" else "right")
        for told in found.labels:
            labels.add_row(
                told.name, *(f"{v:.3f}" for v in (told.before, told.predicted, told.observed)), f"{told.z:+.1f}"
            )
        screen.print(labels)
        expected = "" if found.expected is None else f" (expected {found.expected:.3f})"
        print(f"Loss on these rows: {found.loss:.3f}{expected}")

"""`confrere predict`: a saved model's predictions for new rows."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from confrere.cli.common import for_people, print_json, start_jax
from confrere.cli.inputs import Json
from confrere.plural import plural

Folder = Annotated[Path, typer.Argument(help="The folder of a saved model.", show_default=False)]
Rows = Annotated[Path, typer.Argument(help="A CSV or Parquet file of new rows.", show_default=False)]


def predict(
    folder: Folder,
    rows: Rows,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file instead of printing.", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing but the predictions; with --out, nothing.")] = False,
) -> None:
    """Predictions, with a probability for every class, for the rows of a file.

    Rows must have the columns that the model was trained with; a value that does not fit is named, and nothing is
    predicted then: neither with a level that the model does not know, nor with a gap where training had none, nor with
    a number absurdly far from those of training. The label need not be there.
    """
    with for_people():
        check_file(out, force)
        start_jax()
        table = predictions(folder, rows)
        if out is not None:
            write(table, out)
        if json:
            print_json({"model": str(folder), "rows": table.to_dicts()} | ({"file": str(out)} if out else {}))
        elif out is None:
            print(table.write_csv(), end="")
        elif not quiet:
            print(f"{plural(table.height, 'prediction')}: {out}")


def check_file(out: Path | None, force: bool) -> None:
    """Refuse a file that is there, unless it may be replaced, and a folder."""
    if out is not None and out.is_dir():
        raise ValueError(f"{out} is a folder: name a file")
    if out is not None and out.exists() and not force:
        raise ValueError(f"{out} is there already: choose another name, or say --force")


def predictions(folder: Path, rows: Path) -> Any:
    """A table with the prediction and the probabilities of every row."""
    import polars as pl

    from confrere.saved import load_model

    saved = load_model(folder)
    X = features_of(saved, rows)
    found: dict[str, Any] = {"row": range(len(X)), "prediction": saved.model.predict(X)}
    if saved.model.model.task == "classification":
        chance = saved.model.predict_proba(X)
        names = saved.model.label_names or tuple(str(c) for c in range(chance.shape[1]))
        found |= {f"p({name})": chance[:, c] for c, name in enumerate(names)}
    return pl.DataFrame(found)


def rows_of(saved: Any, rows: Any) -> Any:
    """The rows of a file, with the columns that were derived when the model was trained."""
    from confrere.data.derive import derived
    from confrere.data.intake.read import read

    formulas = saved.manifest["config"].get("derive")
    return derived(read(rows), formulas, saved.model.user) if formulas else read(rows)


def features_of(saved: Any, rows: Any, misfits: Literal["refuse", "allow"] = "refuse") -> Any:
    """The rows of a file as the model takes them; columns by name where the model was trained on plain numbers."""
    import numpy as np

    from confrere.data.intake.options import did_you_mean

    frame = rows_of(saved, rows)
    if saved.model.encoding is not None:
        return saved.model.features(frame, misfits)
    for name in saved.model.feature_names:
        if name not in frame.columns:
            raise ValueError(f"{rows} lacks the column {name!r}{did_you_mean(name, frame.columns)}")
    return saved.model.features(np.column_stack([numbers_in(frame, n, rows) for n in saved.model.feature_names]))


def numbers_in(frame: Any, name: str, rows: Any) -> Any:
    """A column of a file as numbers; a cell that is none is named."""
    numbers = frame[name].cast(float, strict=False).alias("")  # names that look like patterns are names
    if numbers.null_count():
        row = int(numbers.is_null().arg_true()[0])
        cell = frame[name][row]
        what = "is empty" if cell is None else f"is no number: {cell!r}"
        raise ValueError(
            f"{rows}: column {name!r}, row {row} (counted from 0) {what}; mend the cell, or leave the row out"
        )
    return numbers.to_numpy()


def write(table: Any, out: Path) -> None:
    """The file appears whole or not at all; its folder is made if there is none."""
    from confrere.disk import write_whole

    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, table.write_csv())

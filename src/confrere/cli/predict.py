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
    level: Annotated[
        float, typer.Option(min=0.01, max=0.999, help="Of the intervals: how often they are to be right.")
    ] = 0.95,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing but the predictions; with --out, nothing.")] = False,
) -> None:
    """Predictions, with a probability for every class and how sure it is, for the rows of a file.

    low and high are the ends of an interval: of an amount for the new patient's own value, of two classes for the
    probability of the second. The column named possible has the classes to reckon with at that level.

    Rows must have the columns that the model was trained with; a value that does not fit is named, and nothing is
    predicted then: neither with a level that the model does not know, nor with a gap where training had none, nor with
    a number absurdly far from those of training. The label need not be there.
    """
    with for_people():
        check_file(out, force)
        start_jax()
        table = predictions(folder, rows, level)
        if out is not None:
            write(table, out)
        if json:
            told = {"model": str(folder), "rows": table.to_dicts(), "level": level, "intervals": about(folder, level)}
            print_json(told | ({"file": str(out)} if out else {}))
        elif out is None:
            print(table.write_csv(), end="")
        elif not quiet:
            print(f"{plural(table.height, 'prediction')}: {out}")
            print(about(folder, level))


def about(folder: Path, level: float) -> str:
    """What the intervals rest on, or that there are none."""
    from confrere.saved import load_model

    found = load_model(folder).model.uncertainty
    return "This model was saved without intervals." if found is None else found.in_words(level)


def check_file(out: Path | None, force: bool) -> None:
    """Refuse a file that is there, unless it may be replaced, and a folder."""
    if out is not None and out.is_dir():
        raise ValueError(f"{out} is a folder: name a file")
    if out is not None and out.exists() and not force:
        raise ValueError(f"{out} is there already: choose another name, or say --force")


def predictions(folder: Path, rows: Path, level: float = 0.95) -> Any:
    """A table with the prediction and the probabilities of every row, and how sure they are."""
    import polars as pl

    from confrere.saved import load_model

    saved = load_model(folder)
    X = features_of(saved, rows)
    found: dict[str, Any] = {"row": range(len(X)), "prediction": saved.model.predict(X)}
    if saved.model.model.task == "classification":
        chance = saved.model.predict_proba(X)
        names = saved.model.label_names or tuple(str(c) for c in range(chance.shape[1]))
        found |= {f"p({name})": chance[:, c] for c, name in enumerate(names)}
    return pl.DataFrame(found | intervals(saved.model, X, level))


def intervals(model: Any, X: Any, level: float) -> dict[str, Any]:
    """Columns that say how sure each prediction is; none of a model that was saved without.

    Of two classes low and high are of the probability of the second; of more every class has its own. `possible` are
    the labels to reckon with.
    """
    if model.uncertainty is None:
        return {}
    found = model.predict_interval(X, level)
    if found.possible is None:
        return {"low": found.low, "high": found.high}
    names = model.label_names or tuple(str(c) for c in range(found.low.shape[1]))
    ends = {"low": found.low[:, 1], "high": found.high[:, 1]}
    if len(names) > 2:
        ends = {
            f"{end}({n})": a[:, c] for c, n in enumerate(names) for end, a in zip(("low", "high"), found, strict=False)
        }
    return ends | {
        "possible": [" or ".join(n for n, there in zip(names, row, strict=True) if there) for row in found.possible]
    }


def rows_of(saved: Any, rows: Any) -> Any:
    """The rows of a file, with the columns that were derived when the model was trained."""
    from confrere.data.derive import derived
    from confrere.data.intake.read import read

    formulas = saved.manifest["config"].get("derive")
    return derived(read(rows), formulas, saved.model.user) if formulas else read(rows)


def features_of(saved: Any, rows: Any, misfits: Literal["refuse", "allow"] = "refuse") -> Any:
    """The rows of a file as the model takes them; columns by name where the model was trained on plain numbers."""
    from confrere.data.new_rows import by_name

    frame = rows_of(saved, rows)
    if saved.model.encoding is not None:
        return saved.model.features(frame, misfits)
    return saved.model.features(by_name(frame, saved.model.feature_names, str(rows)))


def write(table: Any, out: Path) -> None:
    """The file appears whole or not at all; its folder is made if there is none."""
    from confrere.disk import write_whole

    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, table.write_csv())

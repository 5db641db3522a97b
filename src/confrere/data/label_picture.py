"""A picture of which labels are where: rows of every silo, class by class."""

from pathlib import Path

import numpy as np

from confrere.data.silo import PartName
from confrere.data.silos import Silos

MOST_NUMBERS = 400  # cells beyond which the numbers would be too small to read


def label_counts(silos: Silos, part: PartName = "train") -> np.ndarray:
    """The number of rows of every class, silo by silo [silos, classes].

    >>> import numpy as np, confrere as cf
    >>> label_counts(cf.Silos.from_arrays([(np.eye(2), [0, 1]), (np.eye(2), [1, 1])])).tolist()
    [[1, 1], [0, 2]]
    """
    classes = silos.classes()
    return np.stack([np.bincount(s.rows(part)[1].astype(np.int64), minlength=classes) for s in silos.silos])


def label_picture(silos: Silos, path: str | Path, part: PartName = "train") -> Path:
    """Write a picture of the rows that every silo has of each class (PNG, SVG or PDF by the path's ending).

    >>> import pathlib, tempfile, numpy as np, confrere as cf
    >>> silos = cf.Silos.from_arrays([(np.eye(2), [0, 1]), (np.eye(2), [1, 1])], names=["a", "b"])
    >>> cf.data.label_picture(silos, pathlib.Path(tempfile.mkdtemp()) / "labels.png").name
    'labels.png'
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as problem:
        raise ModuleNotFoundError(
            "pictures need matplotlib, which is not installed: pip install 'confrere[plots]'", name=problem.name
        ) from problem
    counts = label_counts(silos, part)
    names = silos.label_names or tuple(map(str, range(counts.shape[1])))
    figure = Figure(figsize=(2.2 + 0.62 * counts.shape[1], 1.6 + 0.26 * min(len(silos), 60)), layout="constrained")
    axis = figure.add_subplot()
    shown = axis.imshow(counts, cmap="cividis", aspect="auto", vmin=0)
    slanted = max(map(len, names)) > 4
    axis.set_xticks(range(len(names)), names, rotation=30 if slanted else 0, ha="right" if slanted else "center")
    step = -(-len(silos) // 60)
    axis.set_yticks(range(0, len(silos), step), silos.names[::step])
    axis.set_xlabel("label")
    axis.set_title(f"Rows per silo and label ({part})", fontsize=10)
    if counts.size <= MOST_NUMBERS:
        for (i, k), count in np.ndenumerate(counts):
            colour = "black" if count > 0.6 * counts.max(initial=1) else "white"
            axis.text(k, i, str(count), ha="center", va="center", fontsize=7, color=colour)
    figure.colorbar(shown, label="rows")
    figure.savefig(path, dpi=130)
    return Path(path)

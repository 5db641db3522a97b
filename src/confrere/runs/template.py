"""The file that `confrere init` writes: every field, with what it means."""

import json
import os
from pathlib import Path

from confrere.data.choose import data_sets

TEMPLATE = """\
# What to compare, on which data. Run it with: confrere run study.toml --out my-run

[data]
path = {path}  # a table, a folder with one file per silo, a list of files, or a data set such as "titanic"
{label}{silo}# silos = ["north", "south"]      # only these take part
# exclude = ["east"]               # these do not
# features = ["age", "sex"]        # only these columns are used
# drop = ["patient_id"]            # these are not
# categorical = ["cp"]             # these hold codes, not numbers
# missing = {{ chol = [0] }}         # values that mean that there is none
# scale = "shared"                 # or "silo": each silo standardises by itself, and nothing leaves it for that
# min_level = 5                    # a silo does not tell what fewer rows have or know; not for data sets with a name
# task = "classification"          # or "regression"; told from the label if it is not said

# [derive]                         # columns made from others: dates and arithmetic only
# days_ill = "admission - onset"
# [derive.south]                   # where one silo recorded it differently
# days_ill = "duration_hours / 24"

[study]
users = "all"                      # or a list of silos
algorithms = ["auto", "ridge_local", "fedavg", "weight_erosion"]
model = "linear"                   # or "mlp"
seeds = 10                         # random splits of every silo into halves
rounds = 30
# budget = "2MB"                   # bytes that one run of an algorithm may take, of all silos together
# compress = "top_k=0.1"           # or "bits=8": silos send less
others = "train"                   # "all": the others train on their test rows, too, as in the Weight Erosion paper

# [study.grid]                     # numbers to try, tuned on the user's training rows
# lr = [0.1, 0.3, 1.0, 3.0]
"""
LABEL = '# label = "died"              # the column to be predicted\n'
SILO = '# silo = "hospital"           # the column that tells silos apart\n'


def template(path: str, label: str | None, silo: str | None) -> str:
    """The file for some data."""
    return TEMPLATE.format(
        path=in_quotes(path),
        label=f"label = {in_quotes(label)}\n"
        if label
        else '# label = "died"              # the column to be predicted\n',
        silo=f"silo = {in_quotes(silo)}\n"
        if silo
        else '# silo = "hospital"           # the column that tells silos apart\n',
    )


def in_quotes(text: str) -> str:
    """A text as TOML writes it: as JSON does, but for one sign.

    >>> print(in_quotes('so-called "flu"'))
    "so-called \\"flu\\""
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def seen_from(file: Path, data: str) -> str:
    """The path of data as it is found from a file's folder; absolute ones and data sets by name stay."""
    path = Path(data)
    if path.is_absolute() or (data in data_sets() and not path.exists()):
        return data
    return os.path.relpath(os.path.abspath(path), file.resolve().parent)

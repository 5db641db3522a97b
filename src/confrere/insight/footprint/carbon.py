"""Carbon intensity of electricity by country, and the power of processors, from the data files of codecarbon.

The files are read as they lie in the installed package, by `importlib.resources`: no line of that package is run, no
tracker is started and nothing is fetched. The table of countries is Our World in Data's "carbon intensity of
electricity" (CC BY 4.0, from Ember and the Energy Institute), each country with the year of its figure; codecarbon
itself is under the MIT licence. Its figures have no interval.
"""

import ast
import csv
import importlib.metadata
import importlib.resources
import importlib.util
import io
import json
from typing import NamedTuple

from confrere.data.intake.options import did_you_mean

PACKAGE = "codecarbon"
COUNTRIES = "data/private_infra/global_energy_mix.json"
PROCESSORS = "data/hardware/cpu_power.csv"
SOURCE = "Our World in Data, carbon intensity of electricity (CC BY 4.0)"
HINT = "pip install 'confrere[footprint]'"


class Intensity(NamedTuple):
    """Grams of CO2 equivalents per kilowatt-hour in a country, of which year, and who says so."""

    country: str
    name: str
    grams_per_kwh: float
    year: int
    source: str


class ExtraMissing(ValueError):
    """The package with the figures is not installed."""


def text_of(path: str) -> str:
    """A file of the package, which is not imported for it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise ExtraMissing(f"figures for electricity and processors come with the extra footprint: {HINT}")
    files = importlib.resources.files(importlib.util.module_from_spec(spec))
    found = files.joinpath(*path.split("/"))
    if not found.is_file():
        raise ExtraMissing(f"the {PACKAGE} that is installed has no file {path}: {HINT} brings one that has")
    return found.read_text(encoding="utf-8")


def installed_source() -> str:
    """Where figures come from, with the version."""
    return f"{PACKAGE} {importlib.metadata.version(PACKAGE)} (MIT)"


def intensity_of(country: str) -> Intensity:
    """The carbon intensity of a country's electricity, by its three-letter code or its name."""
    table = json.loads(text_of(COUNTRIES))
    names = {row["country_name"].lower(): code for code, row in table.items()}
    code = country.strip().upper()
    code = code if code in table else names.get(country.strip().lower(), "")
    if not code:
        hint = did_you_mean(country, [*table, *(row["country_name"] for row in table.values())])
        raise ValueError(f"country: there is no {country!r} among the {len(table)} countries{hint} (say FRA or France)")
    row = table[code]
    return Intensity(
        code, row["country_name"], float(row["carbon_intensity"]), int(row["year"]),
        f"{SOURCE}, as in {installed_source()}",
    )  # fmt: skip


def processor_power(model: str) -> float | None:
    """The thermal design power of a processor in watts, by its name; None if the table does not have it."""
    plain = model.replace("(R)", "").replace("(TM)", "").split(" CPU @")[0].split(" @ ")[0].replace(" CPU", "")
    wanted = {" ".join(model.lower().split()), " ".join(plain.lower().split())}
    for name, watts in list(csv.reader(io.StringIO(text_of(PROCESSORS))))[1:]:
        if " ".join(name.lower().split()) in wanted:
            return float(watts)
    return None


def power_per_thread() -> float:
    """What codecarbon assumes for one thread of a processor that it does not know, in watts; read from its source."""
    for node in ast.parse(text_of("core/cpu.py")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "DEFAULT_POWER_PER_CORE":
            return float(ast.literal_eval(node.value))
    raise ExtraMissing(f"the {PACKAGE} that is installed does not say what a thread takes: give the watts yourself")

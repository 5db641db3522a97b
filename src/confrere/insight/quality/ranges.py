"""Values that cannot be: generous limits of what is physiologically possible, and what quantity a column holds.

These are not reference ranges. They are set by us, well outside of what survivors were reported with, so that a value
beyond them is more likely a slip of the pen, a unit or a code than a patient. A quantity may be recorded in several
units, each with its limits; the one that fits the middle of the values is taken. A user's own limits, by the name of
a column, come first; False takes a column out.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from confrere.data.intake.options import did_you_mean
from confrere.insight.quality.finding import Finding
from confrere.insight.quality.recorded import Recorded
from confrere.plural import plural
from confrere.report.intervals import share

FITTING = 0.8  # part of the values that must lie within limits before any other is called impossible


class Limits(NamedTuple):
    """The lowest and the highest possible value, in a unit."""

    low: float
    high: float
    unit: str = ""


QUANTITIES: Mapping[str, tuple[Limits, ...]] = {
    "temperature": (Limits(13, 47, "°C"), Limits(55, 117, "°F")),
    "systolic pressure": (Limits(20, 400, "mmHg"), Limits(2.5, 54, "kPa")),
    "diastolic pressure": (Limits(5, 350, "mmHg"), Limits(0.6, 47, "kPa")),
    "heart rate": (Limits(10, 400, "beats a minute"),),
    "breathing rate": (Limits(1, 150, "breaths a minute"),),
    "oxygen saturation": (Limits(10, 100, "%"), Limits(0.1, 1, "as a share")),
    "age": (Limits(0, 125, "years"),),
    "height": (Limits(20, 280, "cm"), Limits(0.2, 2.8, "m"), Limits(8, 110, "inches")),
    "weight": (Limits(0.2, 650, "kg"), Limits(0.44, 1435, "pounds")),
    "body mass index": (Limits(5, 250, "kg/m²"),),
    "cholesterol": (Limits(10, 3000, "mg/dL"), Limits(0.26, 78, "mmol/L")),
    "glucose": (Limits(5, 3000, "mg/dL"), Limits(0.25, 170, "mmol/L")),
    "creatinine": (Limits(0.05, 90, "mg/dL"), Limits(4, 8000, "µmol/L")),
    "bilirubin": (Limits(0.01, 100, "mg/dL"), Limits(0.2, 1700, "µmol/L")),
    "urea nitrogen": (Limits(0.5, 500, "mg/dL"), Limits(0.2, 180, "mmol/L")),
    "haemoglobin": (Limits(0.5, 30, "g/dL"), Limits(5, 300, "g/L")),
    "albumin": (Limits(0.2, 10, "g/dL"), Limits(2, 100, "g/L")),
    "calcium": (Limits(0.5, 8, "mmol/L"), Limits(2, 32, "mg/dL")),
    "sodium": (Limits(80, 220, "mmol/L"),),
    "potassium": (Limits(0.8, 20, "mmol/L"),),
    "lactate": (Limits(0.05, 60, "mmol/L"),),
    "blood pH": (Limits(6.0, 8.2, ""),),
    "Glasgow coma scale": (Limits(3, 15, "points"),),
}
NAMES: Mapping[str, str] = {  # words of which a column's name may consist, in small letters
    **dict.fromkeys(("temp", "temperature", "bodytemp", "bodytemperature"), "temperature"),
    **dict.fromkeys(("trestbps", "sbp", "psyst", "systolic", "sysbp", "systolicbp"), "systolic pressure"),
    **dict.fromkeys(("dbp", "pdiast", "diastolic", "diabp", "diastolicbp"), "diastolic pressure"),
    **dict.fromkeys(("hrate", "heartrate", "pulse", "thalach", "bpm"), "heart rate"),
    **dict.fromkeys(("rrate", "resprate", "respiratoryrate", "breathingrate"), "breathing rate"),
    **dict.fromkeys(("oxsat", "spo2", "sao2", "o2sat"), "oxygen saturation"),
    **dict.fromkeys(("age", "ageyears"), "age"),
    **dict.fromkeys(("height", "bodyheight"), "height"),
    **dict.fromkeys(("weight", "bodyweight"), "weight"),
    **dict.fromkeys(("bmi", "bodymassindex"), "body mass index"),
    **dict.fromkeys(("chol", "cholesterol", "ldl", "hdl"), "cholesterol"),
    **dict.fromkeys(("glu", "glucose", "glc", "bloodglucose", "bloodsugar"), "glucose"),
    **dict.fromkeys(("cr", "crea", "creat", "creatinine", "creatine"), "creatinine"),
    **dict.fromkeys(("bili", "tbili", "bilirubin"), "bilirubin"),
    **dict.fromkeys(("bun", "ureanitrogen"), "urea nitrogen"),
    **dict.fromkeys(("hb", "hgb", "haemoglobin", "hemoglobin"), "haemoglobin"),
    **dict.fromkeys(("alb", "albumin"), "albumin"),
    **{name: name for name in ("calcium", "sodium", "potassium", "lactate")},
    **dict.fromkeys(("ph", "bloodph"), "blood pH"), "gcs": "Glasgow coma scale",
}  # fmt: skip
Ranges = Mapping[str, tuple[Limits, ...]]  # by column; an empty tuple: none


def quantity_of(column: str) -> str | None:
    """What a column holds, by its name; numbers and signs around it do not count.

    >>> quantity_of("Glu_1"), quantity_of("body temp"), quantity_of("temporary"), quantity_of("SpO2")
    ('glucose', 'temperature', None, 'oxygen saturation')
    """
    plain = re.sub(r"[^a-z0-9]", "", column.casefold())
    for name in (plain, plain.rstrip("0123456789")):
        if name in NAMES:
            return NAMES[name]
    return None


def own_ranges(given: Mapping[str, Any] | str | Path | None) -> Ranges:
    """A user's limits, as a mapping or in a TOML file: column = [low, high], [low, high, unit] or false.

    >>> own_ranges({"temp": [30, 45, "°C"], "weight": False})
    {'temp': (Limits(low=30.0, high=45.0, unit='°C'),), 'weight': ()}
    """
    if given is None:
        return {}
    where = "ranges" if isinstance(given, Mapping) else str(given)
    table: Any = given if isinstance(given, Mapping) else read_ranges(Path(given))
    return {str(name): checked_limits(where, str(name), value) for name, value in table.items()}


def check_columns(given: Mapping[str, Any] | str | Path | None, ranges: Ranges, every: Sequence[Recorded]) -> None:
    """Refuse limits of a column that no silo has, or whose values are no numbers."""
    where = "ranges" if isinstance(given, Mapping) else str(given)
    numbers = list(dict.fromkeys(name for silo in every for name in silo.numbers))
    levels = {name for silo in every for name in silo.levels}
    for name in ranges:
        if name in numbers:
            continue
        if name in levels:
            raise ValueError(
                f"{where}: the column {name!r} has levels, not numbers, and so no limits: take the line out"
            )
        raise ValueError(f"{where}: {name!r} is no column of measurements in any silo{did_you_mean(name, numbers)}")


def read_ranges(file: Path) -> Mapping[str, Any]:
    """The table `ranges` of a TOML file."""
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as problem:
        raise ValueError(f"{file}: this is no TOML: {problem}") from problem
    table = found.get("ranges")
    if not isinstance(table, Mapping):
        raise ValueError(f"{file}: there is no table [ranges] with lines such as temp = [30, 45]")
    return table


def checked_limits(where: str, column: str, value: Any) -> tuple[Limits, ...]:
    """The limits of one column, or an error that says what they should look like."""
    if value is False:
        return ()
    wanted = f"{where}: {column!r} must be [low, high], [low, high, unit] or false, not {value!r}"
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) not in (2, 3):
        raise ValueError(wanted)
    low, high, *unit = value
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in (low, high)) or not low < high:
        raise ValueError(f"{wanted}; low is below high")
    return (Limits(float(low), float(high), str(unit[0]) if unit else ""),)


def limits_of(column: str, ranges: Ranges, values: np.ndarray, elsewhere: np.ndarray) -> Limits | None:
    """The limits of a column, in the unit that fits the middle of the others' bands, or else of the silo's values.

    None if nothing is known about it, or if the silo's values do not look like this quantity at all.
    """
    if column in ranges:
        return ranges[column][0] if ranges[column] else None
    middle = float(np.median(elsewhere if len(elsewhere) else values))
    known = [limits for limits in QUANTITIES.get(quantity_of(column) or "", ()) if limits.low <= middle <= limits.high]
    if not known:
        return None
    chosen = min(known, key=lambda x: abs(np.log(max(middle, 1e-9)) - np.log(max(x.low, 1e-3) * x.high) / 2))
    return chosen if np.mean((values >= chosen.low) & (values <= chosen.high)) >= FITTING else None


def impossible(
    column: str, values: np.ndarray, limits: Limits, places: np.ndarray
) -> tuple[Finding | None, np.ndarray]:
    """The values beyond the limits, and which they are [rows]; NaN is not one of them."""
    beyond = (values < limits.low) | (values > limits.high)
    hits, rows = int(beyond.sum()), int((~np.isnan(values)).sum())
    if not hits:
        return None, beyond
    found = share(hits, rows)
    unit = f" {limits.unit}" if limits.unit else ""
    some = ", ".join(f"{v:g}" for v in np.unique(values[beyond])[:4])
    return Finding(
        "impossible", column,
        f"{column} has {plural(hits, 'value')} that cannot be ({some}): possible is {limits.low:g} to "
        f"{limits.high:g}{unit}",
        f"{hits} of {rows} values; generous limits of the possible, no reference range (a rule, not a test)",
        "look these rows up; leave the value blank if it was not taken",
        found.value, found.low, found.high, "share of the known values", rows=tuple(places[beyond].tolist()),
    ), beyond  # fmt: skip

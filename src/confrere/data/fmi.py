"""Weather stations in Finland: one station is one silo, and neighbours have similar weather.

Source: Finnish Meteorological Institute, open data, CC BY 4.0, in the files of the exercises of A. Jung, Federated
Learning: From Theory to Practice (github.com/alexjungaalto/FederatedLearning, Edition2025/CodingAssignments).

`FMI_data.csv` (edition "2024"): 19,768 air temperatures, hourly, of 207 stations, from 28 December 2023 to 1 January
2024; 203 stations have 96 rows. `FMI_data_2025.csv` (edition "2025"): 192 stations with ten rows, each five days and
the day after. `weather_data.csv`: the 720 hours of April 2023 at one station.
"""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from confrere.data.fetch import DataNotFound, check_file, data_folder
from confrere.data.silos import Silos

if TYPE_CHECKING:
    import polars as pl

Edition = Literal["2024", "2025"]
FILES = {
    "FMI_data.csv": "933843e9e575ca1d0ee5860ad32ee14bf24a78623910eab3e3b1d047792b8b93",
    "FMI_data_2025.csv": "b96b79f73b232c714ea6be585402fbc0d4891663e1d6f16d570ed291f3aeb336",
    "weather_data.csv": "364a454156c46437751a152663a4bf979de580f85308bf7a4d2726c5845a351e",
}
SCALES = {"latitude": 100, "longitude": 100, "year": 2025, "month": 13, "day": 32, "hour": 25, "minute": 61}
PAST = tuple(f"{which} day {day}" for which in ("Tmax", "Tmin") for day in range(1, 6))
ORIGIN = {
    "2024": "Finnish Meteorological Institute (CC BY 4.0), hourly temperatures of 207 stations over four days",
    "2025": "Finnish Meteorological Institute (CC BY 4.0), daily extremes of 192 stations",
}


class Rows(NamedTuple):
    """Rows of all stations in the order of the file."""

    names: tuple[str, ...]  # the stations, in order of first appearance
    coordinates: np.ndarray  # [stations, 2] latitude and longitude in degrees
    station: np.ndarray  # [rows] the station's place in names
    X: np.ndarray  # [rows, features]
    y: np.ndarray  # [rows]


class Hours(NamedTuple):
    """The hours of one station, in order."""

    times: np.ndarray  # [hours] datetime64, the local time at which the hour begins
    columns: tuple[str, ...]
    values: np.ndarray  # [hours, columns], 0 where nothing was measured


def fmi(edition: Edition = "2024") -> Silos:
    """Weather stations of Finland as silos, in order of first appearance; all rows for training.

    "2024": the temperature of an hour, from latitude / 100, longitude / 100, year / 2025, month / 13, day / 32,
    hour / 25 and minute / 61, as in the book's exercises. "2025": the next day's highest temperature, from the highest
    and the lowest of five days. The files are taken from CONFRERE_DATA/fmi_weather, and their sums are checked.

    >>> import confrere as cf
    >>> silos = cf.data.fmi()
    >>> len(silos), silos.names[0], silos.sizes()[:3]
    (207, 'Enontekiö Kilpisjärvi Saana', (96, 96, 96))
    >>> silos.feature_names
    ('latitude', 'longitude', 'year', 'month', 'day', 'hour', 'minute')
    >>> cf.data.fmi_coordinates()[0].tolist()
    [69.04277, 20.85091]
    """
    rows = rows_of(edition)
    pairs = [(rows.X[rows.station == i], rows.y[rows.station == i]) for i in range(len(rows.names))]
    features = tuple(SCALES) if edition == "2024" else PAST
    silos = Silos.from_arrays(pairs, rows.names, features)
    return Silos(silos.silos, silos.feature_names, origin=ORIGIN[edition])


def fmi_coordinates(edition: Edition = "2024") -> np.ndarray:
    """Latitude and longitude in degrees of the stations of `fmi(edition)`, [stations, 2], in the order of the silos."""
    return rows_of(edition).coordinates.copy()


def rows_of(edition: Edition) -> Rows:
    """All rows of an edition."""
    if edition not in get_args(Edition):
        raise ValueError(f"edition must be one of {', '.join(get_args(Edition))}, not {edition!r}")
    return (
        hourly_rows(weather_file("FMI_data.csv"))
        if edition == "2024"
        else daily_rows(weather_file("FMI_data_2025.csv"))
    )


@cache
def hourly_rows(path: Path) -> Rows:
    """Temperatures by place and time."""
    table = table_in(path)
    time = table["Timestamp"].str.to_datetime("%Y-%m-%d %H:%M:%S").dt
    parts = {"latitude": table["Latitude"], "longitude": table["Longitude"], "year": time.year(),
             "month": time.month(), "day": time.day(), "hour": time.hour(), "minute": time.minute()}  # fmt: skip
    X = np.stack([parts[name].to_numpy() / scale for name, scale in SCALES.items()], axis=1)
    return with_stations(table["name"], table, X, table["temp"].to_numpy())


@cache
def daily_rows(path: Path) -> Rows:
    """The extremes of five days and the next day's highest temperature; the five are written as text."""
    table = table_in(path)
    X = np.array([[json.loads(text) for text in table[which]] for which in ("Tmax", "Tmin")], float)  # [2, rows, 5]
    return with_stations(table["Name"], table, np.concatenate(list(X), axis=1), table["y_Tmax"].to_numpy())


def with_stations(names: "pl.Series", table: "pl.DataFrame", X: np.ndarray, y: np.ndarray) -> Rows:
    """Number the stations in order of first appearance; each is where its first row says."""
    found = names.unique(maintain_order=True).to_list()
    place = {name: i for i, name in enumerate(found)}
    station = np.array([place[name] for name in names])
    first = np.unique(station, return_index=True)[1]
    coordinates = table.select("Latitude", "Longitude").to_numpy()[first]
    return Rows(tuple(found), coordinates, station, X, y)


def kustavi_hours() -> Hours:
    """What was measured at Kustavi Isokari in April 2023: ten columns, the first of them the mean temperature."""
    table = table_in(weather_file("weather_data.csv"), infer_schema=False)
    texts = zip(*(table[name] for name in ("Year", "Month", "Day", "Time [Local time]")), strict=True)
    times = np.array(
        [f"{year}-{int(month):02}-{int(day):02}T{hour}" for year, month, day, hour in texts], "datetime64[m]"
    )
    columns = tuple(table.columns[5:])
    values = table.select(columns).cast(dict.fromkeys(columns, float), strict=False).fill_null(0.0).to_numpy()
    return Hours(times, columns, values)


def table_in(path: Path, infer_schema: bool = True) -> "pl.DataFrame":
    """The table in a file; polars is loaded when there is one to read."""
    import polars as pl

    return pl.read_csv(path, infer_schema=infer_schema)


def weather_file(name: str) -> Path:
    """A file of CONFRERE_DATA/fmi_weather, checked."""
    folder = data_folder("fmi_weather")
    if folder is None or not (folder / name).is_file():
        raise DataNotFound(
            f"the weather file {name} was not found: set CONFRERE_DATA to a folder that has fmi_weather/{name} "
            "(from github.com/alexjungaalto/FederatedLearning, Edition2025/CodingAssignments)"
        )
    return check_file(folder / name, FILES[name])

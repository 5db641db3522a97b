"""Sites in folders of their own, each with a table and a policy."""

from pathlib import Path

import numpy as np

from confrere.deploy.conduct import Conduct
from confrere.deploy.desk import Desk
from confrere.deploy.exchange import InProcess
from confrere.deploy.policy import read_policy
from confrere.deploy.study import Deployed, study_of
from confrere.saved import Saved, load_model

SITES = ("ash", "birch", "cedar", "elm")
DATA = '[data]\nlabel = "ill"\n'


def write_table(path: Path, seed: int, rows: int) -> None:
    """Patients of one hospital: numbers with gaps, and a category."""
    rng = np.random.default_rng(seed)
    age, dose = rng.normal(60 + seed, 10, rows), rng.normal(2, 1, rows)
    ill = (age - 60) / 10 + dose - 2 + (0.3 * seed - 0.4) * dose + rng.logistic(size=rows) > 0
    ward = rng.choice(["A", "B", "C"], rows)
    lines = [
        f"{a:.1f},{'' if k % 17 == 3 else f'{d:.2f}'},{w},{'yes' if i else 'no'}"
        for k, (a, d, w, i) in enumerate(zip(age, dose, ward, ill, strict=True))
    ]
    path.write_text("\n".join(["age,dose,ward,ill", *lines]) + "\n")


def make_sites(folder: Path, policy: str = "") -> dict[str, Path]:
    """The folders of four hospitals."""
    places = {}
    for number, name in enumerate(SITES):
        place = folder / name
        place.mkdir(parents=True)
        write_table(place / "patients.csv", number, 60)
        (place / "site.toml").write_text(f'[site]\nname = "{name}"\ndata = "patients.csv"\n[policy]\n{policy}')
        places[name] = place
    return places


def tables(places: dict[str, Path]) -> dict[str, Path]:
    return {name: place / "patients.csv" for name, place in places.items()}


def study(algorithm: str = "fedavg", options: str = "lr = 0.2, batch = 8", more: str = "", data: str = "") -> Deployed:
    """A study of all four."""
    return study_of(
        f'{DATA}{data}\n[study]\nsites = ["ash", "birch", "cedar", "elm"]\nalgorithm = "{algorithm}"\n'
        f"options = {{ {options} }}\nrounds = 10\n{more}\n[terms]\ndeadline = 120.0\n".encode()
    )


def approve(places: dict[str, Path], asked: Deployed) -> None:
    for place in places.values():
        read_policy(place).approve(asked)


def conduct(places: dict[str, Path], asked: Deployed, folder: Path) -> Conduct:
    """A hub whose sites are in the same process."""
    return Conduct(asked, folder, InProcess({name: Desk(place).answer for name, place in places.items()}))


def kept_models(places: dict[str, Path], asked: Deployed) -> dict[str, Saved]:
    """The finished models, by site."""
    found = {}
    for name, place in places.items():
        for folder in (place / "state").glob(f"{asked.hash[:16]}-*/model"):
            found[name] = load_model(folder)
    return found

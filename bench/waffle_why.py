"""Why some cells are not what was published: Local on A, SCAFFOLD on B and APFL on A, one thing changed at a time.

    python bench/waffle_why.py bench/waffle-why [a question] [distinct words of a variation]

Every finished run is stored like a cell of the table, and is not run again; `bench/waffle_page.py` writes the tables.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from confrere import algorithms, models
from confrere.cli.common import start_jax
from confrere.data.mnist import digits
from confrere.data.silo import Silo, part_number
from confrere.data.silos import Silos
from confrere.models import Model
from confrere.recipe import Recipe
from confrere.reproduce.waffle.cells import Cell, Store, facts, run_cell
from confrere.reproduce.waffle.setting import ALICE, Setting, silos_of
from lenet_variants import Variant, lenet, predecessor

PAPER = Setting(model="lenet5")
LOCAL, BRIEF, ALIKE = PAPER._replace(rounds=40), PAPER._replace(distribution="B", rounds=20), PAPER._replace(rounds=20)
EPOCH = {"batch": 32, "epochs": 1}


class Variation(NamedTuple):
    """A run that differs from the table's in one thing."""

    setting: Setting
    recipe: Recipe
    model: Callable[[], Model] = models.lenet5
    change: Callable[[Silos], Silos] = lambda silos: silos


def local(setting: Setting = LOCAL, lr: float = 0.1, **other) -> Variation:
    """Training alone, 40 rounds."""
    how = {name: other.pop(name) for name in ("order", "momentum") if name in other}
    return Variation(setting, algorithms.local(lr=lr, **EPOCH, **how), **other)


def scaffold(setting: Setting = BRIEF, lr: float = 0.1, **other) -> Variation:
    """SCAFFOLD, 20 rounds."""
    how = {name: other.pop(name) for name in ("option", "server_lr") if name in other}
    return Variation(setting, algorithms.scaffold(lr=lr, **EPOCH, **how), **other)


def apfl(setting: Setting = ALIKE, **how) -> Variation:
    """APFL, 20 rounds."""
    return Variation(setting, algorithms.apfl(lr=0.1, **EPOCH, **how))


def each_silo(change: Callable[[Silo], Silo]) -> Callable[[Silos], Silos]:
    """The same change in every silo."""
    return lambda silos: replace(silos, silos=tuple(change(silo) for silo in silos.silos))


def from_0_to_1(silo: Silo) -> Silo:
    """Pixels as bytes over 255."""
    images = digits()
    return replace(silo, X=silo.X * np.float32(images.std[0]) + np.float32(images.mean[0]))


def on_all_test_images(silos: Silos) -> Silos:
    """Alice tested on all 10,000 images, those that she validates on among them."""
    images, alice = digits(), silos.silos[ALICE]
    X = images.test.reshape(len(images.test), -1) - 255 * np.float32(images.mean[0])
    X /= 255 * np.float32(images.std[0])
    kept = alice.part != part_number("test")
    tested = replace(
        alice, X=np.concatenate([alice.X[kept], X]), y=np.concatenate([alice.y[kept], images.test_y.astype(np.int32)]),
        part=np.concatenate([alice.part[kept], np.full(len(X), part_number("test"), np.int8)]),
    )  # fmt: skip
    return replace(silos, silos=(tested, *silos.silos[1:]))


def like(**how) -> Callable[[], Model]:
    """A variant of LeNet-5."""
    return lambda: lenet(Variant(**how))


QUESTIONS: Mapping[str, Mapping[str, Variation]] = {
    "Local on A": {
        "as in the table": local(),
        "tested on all 10,000 images": local(change=on_all_test_images),
        "pixels from 0 to 1": local(change=each_silo(from_0_to_1)),
        "Glorot's beginning, biases 0": local(model=like(glorot=True)),
        "tanh": local(model=like(tanh=True)),
        "means in place of maxima": local(model=like(mean_pool=True)),
        "tanh and means, images padded to 32 x 32 (1998)": local(model=like(tanh=True, mean_pool=True, padding=2)),
        "images padded to 32 x 32": local(model=like(padding=2)),
        "the network of the earlier report": local(model=predecessor),
        "never shuffled": local(order="cyclic"),
        "learning rate 0.01, momentum 0.9": local(lr=0.01, momentum=0.9),
        "3000 images": local(LOCAL._replace(rows=3000)),
    },
    "SCAFFOLD on B": {
        "another seed": scaffold(BRIEF._replace(seed=2)),
        "option I": scaffold(option="I"),
        "server's step 0.5": scaffold(server_lr=0.5),
        "learning rate 0.03": scaffold(lr=0.03),
        "pixels from 0 to 1": scaffold(change=each_silo(from_0_to_1)),
    },
    "APFL on A": {
        "share of the own model kept at 0.75": apfl(alpha=0.75, adaptive=False),
        "share of the own model kept at 0.95": apfl(alpha=0.95, adaptive=False),
    },
}  # fmt: skip


def find(store: Store, question: str, name: str) -> Cell | None:
    """A finished run."""
    one = QUESTIONS[question][name]
    return store.get(facts(one.setting, f"{question}: {name}", one.recipe))


def run(store: Store, question: str, name: str) -> Cell:
    """One variation, unless it is there already."""
    one = QUESTIONS[question][name]
    about = facts(one.setting, f"{question}: {name}", one.recipe)
    cell = store.get(about)
    if cell is None:
        cell = run_cell(one.setting, one.recipe, one.change(silos_of(one.setting)), model=one.model())
        store.put(about, cell)
    return cell


if __name__ == "__main__":
    start_jax()
    folder, wanted, part = [*sys.argv[1:], "", ""][:3]
    for question, variations in QUESTIONS.items():
        for name in variations:
            if wanted in question and part in name:
                cell = run(Store(Path(folder)), question, name)
                best = cell.accuracy[1:].max()
                print(f"{question}: {name}: {best:.4f} / {cell.accuracy[-1]:.4f} ({cell.seconds:.0f} s)", flush=True)

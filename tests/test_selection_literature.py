"""Selections and the literature's methods beside each other on the Titanic: the measured table of docs/selection.md.

What one silo sends, and what the user's loss on its test rows rises by if its twin, of all others the most useful,
trains on flipped labels, or sends random numbers while it trains (having been honest while it was judged).
"""

import re
from pathlib import Path
from time import process_time

import numpy as np
import pytest

import confrere as cf
from confrere.transforms import attacked
from tests.selection_problems import flip

PAGE = Path(__file__).resolve().parents[1] / "docs" / "selection.md"
USER, LIAR, SEEDS, ROUNDS = "0-35 a", "0-35 b", range(5), 30
MODEL = cf.models.logistic("zero")


def selected(method):
    """FedAvg with those whom a selection keeps, and the bytes that a silo sent for it."""

    def make(silos):
        found = method(silos, USER, resamples=2)
        return cf.fedavg(lr=0.1, prior=found), max(c.up for c in found.crossings if c.silo != USER)

    return make


def plain(make):
    return lambda silos: (make(), 0)


METHODS = {
    "Ndoye, then FedAvg": selected(cf.selection.ndoye),
    "influence, then FedAvg": selected(cf.selection.influence),
    "gradients (Weight Erosion)": plain(lambda: cf.weight_erosion(user=USER, lr=1.0, p_d=0.02)),
    "FedAvg with all": plain(lambda: cf.fedavg(lr=0.1)),
    "fine-tuning": plain(lambda: cf.fine_tuned(lr=0.1)),
    "clustering": plain(lambda: cf.clustered(lr=0.1)),
    "data interpolation": plain(lambda: cf.data_interpolation(user=USER, lr=1.0)),
    "model interpolation": plain(lambda: cf.apfl(lr=0.1)),
    "MAML": plain(lambda: cf.per_fedavg(lr=0.1)),
}


def loss_of(recipe, silos, seed):
    """The user's loss after a run, and the bytes that the silo which sent most sent in it."""
    run = cf.simulate(recipe, MODEL, silos.for_user(USER, "train"), ROUNDS, seed, metrics=["log_loss"], record=())
    last = np.asarray(run.metrics["log_loss"][-1])
    return float(last if last.ndim == 0 else last[0]), int(run.bytes_up.sum(axis=0)[1:].max())


def measured(name, seed):
    """Bytes that a silo sends, the user's loss, and what it rises by with flipped labels and with noise."""
    honest = cf.data.titanic("age-some", seed=seed)
    recipe, before = METHODS[name](honest)
    alone, sent = loss_of(recipe, honest, seed)
    flipped = flip(honest, LIAR)
    with_flips, _ = loss_of(METHODS[name](flipped)[0], flipped, seed)
    with_noise, _ = loss_of(attacked(recipe, (1,), "noise", scale=0.1), honest, seed)
    return before + sent, alone, with_flips - alone, with_noise - alone


def printed(name):
    """A line of the page: bytes, loss, rise with flips, rise with noise."""
    line = re.search(rf"^\| {re.escape(name)} \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert line, name
    size, _, *means = (cell.split("±")[0] for cell in line[1].split("|"))
    return [float(size.split()[0]), *(float(mean) for mean in means)]


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_methods_send_and_suffer_what_the_page_says(name):
    found = np.array([measured(name, seed) for seed in SEEDS])
    begun = process_time()
    measured(name, 0)
    seconds = (process_time() - begun) / 3  # three runs, compiled before
    shown = " | ".join(f"{m:+.3f} ± {s:.3f}" for m, s in zip(found.mean(0)[1:], found.std(0, ddof=1)[1:], strict=True))
    print(f"| {name} | {found[0, 0] / 1000:.1f} kB | {seconds:.2f} s | {shown} |")
    size, loss, flips, noise = printed(name)
    assert found[0, 0] / 1000 == pytest.approx(size, abs=0.06)
    np.testing.assert_allclose(found.mean(axis=0)[1:], [loss, flips, noise], atol=0.003)

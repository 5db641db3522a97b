"""Weight Erosion's penalty in the WAFFLE benchmark, chosen on validation rows; and the variants that ask why."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

import confrere as cf
from confrere.reproduce.waffle.cells import Cell, Store, run_cell
from confrere.reproduce.waffle.methods import METHODS, weight_erosion
from confrere.reproduce.waffle.penalties import (
    choose,
    faded,
    name_of,
    penalties_report,
    penalty_of,
    run_penalties,
    validated,
)
from confrere.reproduce.waffle.setting import Setting, silos_of
from tests.test_cli import confrere

BENCH = Path(__file__).resolve().parents[1] / "bench"
TINY = Setting(agents=3, rows=20, rounds=4, lr=0.01)


def run(others, best_validation) -> Cell:
    """A run whose other agents have the given weights, and whose best round is the second."""
    others = np.array(others, float)
    weights = np.stack([np.ones(len(others)), others, np.zeros(len(others))], axis=1)
    validation = np.full(len(others) + 1, 0.1)
    validation[[0, 2]] = [0.99, best_validation]
    return Cell(np.full(len(others) + 1, 0.5), validation, np.zeros(len(others) + 1), weights, 1.0)


def fading_at(heard: int, best_validation: float) -> Cell:
    """A run of ten rounds in which others are heard for some."""
    return run([0.5] * heard + [0] * (10 - heard), best_validation)


def test_others_have_faded_when_they_are_heard_no_more():
    assert faded(fading_at(7, 0.5)) == 0.7
    assert faded(run([0.5, 0, 0.5, 0], 0.5)) == 0.75  # an agent may come back
    assert faded(run([0.5, 0.5, 0.1], 0.5)) == float("inf")
    assert faded(run([0, 0], 0.5)) == 0


def test_the_untrained_model_is_no_round_to_be_best_in():
    assert validated(fading_at(7, 0.6)) == 0.6


def test_the_best_on_validation_rows_is_chosen_among_those_that_fade_in_time_everywhere():
    tried = {
        0.5: {"A": [fading_at(9, 0.99)], "B": [fading_at(7, 0.99)]},
        0.7: {"A": [fading_at(7, 0.70)], "B": [fading_at(7, 0.90)]},
        0.9: {"A": [fading_at(6, 0.85)], "B": [fading_at(6, 0.80)]},
        2.0: {"A": [fading_at(4, 0.99)], "B": [fading_at(4, 0.99)]},
    }
    assert choose(tried) == 0.9
    del tried[0.9]
    assert choose(tried) == 0.7
    del tried[0.7]
    assert choose(tried) is None
    report = penalties_report(TINY, {1.0: {"A": [run([0.5, 0.1], 0.5)]}}, [1])
    assert report["candidates"] == {"1": {"A": {"faded": None, "validation": 0.5}}}


def test_of_equals_the_one_nearest_to_two_thirds_is_chosen():
    assert choose({0.7: {"A": [fading_at(6, 0.9)]}, 0.8: {"A": [fading_at(7, 0.9)]}}) == 0.8


def test_the_tables_own_penalty_is_the_tables_own_cell():
    deep = TINY._replace(model="lenet5")
    for setting, own in ((TINY, 2), (deep, 0.8)):
        assert name_of(setting, own) == "weight_erosion"
        assert penalty_of("weight_erosion", setting) == own
        assert penalty_of(name_of(setting, 0.65), setting) == 0.65
        assert weight_erosion(setting, own).hyper == METHODS["weight_erosion"](setting).hyper
    assert weight_erosion(deep, 1.5).hyper["p_d"] == 1.5 / TINY.rounds


def test_what_the_documentation_says_of_penalties_is_what_the_cells_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_page import read

    own = {"long": {}, "short": {}, "0.9": {}, "1": {}}
    others = {name_of(Setting(model="lenet5"), float(which)): which for which in ("0.9", "1")}
    for one in read(BENCH / "waffle-cells"):
        setting = one.about["setting"]
        if (setting["model"], one.about["method"]) == ("lenet5", "weight_erosion") and setting["rounds"] in (25, 100):
            own["long" if setting["rounds"] == 100 else "short"][setting["distribution"]] = one.cell
        elif setting["rounds"] == 100 and one.about["method"] in others:
            own[others[one.about["method"]]][setting["distribution"]] = one.cell
    first_alone = {d: round(100 * faded(cell)) + 1 for d, cell in own["long"].items()}
    assert first_alone == {"A": 59, "B": 65, "C": 64, "A*": 71, "B*": 66}
    assert {faded(cell) for cell in own["short"].values()} == {0.84}
    gone = {which: [faded(cell) for cell in own[which].values()] for which in ("long", "0.9", "1")}
    assert {which: (min(when), max(when), len(when)) for which, when in gone.items()} == {
        "long": (0.58, 0.70, 5), "0.9": (0.53, 0.64, 5), "1": (0.50, 0.57, 5),
    }  # fmt: skip
    means = [np.mean([validated(cell) for cell in own[which].values()]) for which in gone]
    assert means == pytest.approx([0.9893, 0.9893, 0.9899], abs=6e-5)
    assert choose({0.8: wrapped(own["long"]), 0.9: wrapped(own["0.9"]), 1.0: wrapped(own["1"])}) == 0.8
    early = [distances(cell)[:10].mean() for cell in own["long"].values()]
    late = [np.nanmean(distances(cell)[40:60]) for cell in own["long"].values()]
    assert (min(early), max(early)) == pytest.approx((1.2, 1.5), abs=0.06)
    assert (min(late), max(late)) == pytest.approx((1.9, 3.6), abs=0.06)


def wrapped(cells: dict[str, Cell]) -> dict[str, list[Cell]]:
    """One seed for every distribution."""
    return {name: [cell] for name, cell in cells.items()}


def distances(cell: Cell) -> np.ndarray:
    """The others' relative distances [rounds, n - 1], from how their weights went down with p_d = .008."""
    alpha = (cell.weights / cell.weights[:, :1])[:, 1:]
    before = np.vstack([np.ones(alpha.shape[1]), alpha[:-1]])
    return np.where(alpha > 0, (before - alpha) / 0.008, np.nan)


@pytest.mark.usefixtures("shared_data")
def test_a_larger_penalty_lets_others_fade_earlier(tmp_path):
    tried = run_penalties(TINY, ["B"], [0.1, 2, 9], [1], Store(tmp_path))
    assert [faded(tried[c]["B"][0]) for c in (0.1, 9)] == [float("inf"), 0.0]
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    with pytest.raises(ValueError, match="penalties must be numbers of 0 or more"):
        run_penalties(TINY, ["B"], [-1], [1], Store(tmp_path))


@pytest.mark.usefixtures("shared_data")
def test_the_command_tries_penalties():
    words = "reproduce waffle --distribution B --rows 20 --agents 3 --rounds 4 --seeds 1 --batch 10 --penalties"
    done = confrere(*words.split(), "0.5,9", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert set(report["candidates"]) == {"0.5", "9"}
    assert (report["chosen"], report["setting"]["batch"]) == (None, 10)
    refused = confrere(*words.split(), "0.5;9")
    assert refused.returncode == 1
    assert "--penalties wants numbers with commas between" in refused.stderr


def test_the_plain_variant_is_the_library_s_lenet(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from lenet_variants import Variant, lenet, predecessor

    X = jax.random.normal(jax.random.key(1), (3, 784))
    ours, plain = cf.models.lenet5(), lenet(Variant())
    params = ours.init(jax.random.key(0), 784, 10)
    jax.tree.map(np.testing.assert_array_equal, params, plain.init(jax.random.key(0), 784, 10))
    np.testing.assert_allclose(plain.apply(params, X), ours.apply(params, X), atol=1e-5)
    other = lenet(Variant(tanh=True, mean_pool=True, padding=2, glorot=True))
    params = other.init(jax.random.key(0), 784, 10)
    assert other.apply(params, X).shape == (3, 10)
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == 61706  # LeNet-5 on 32 x 32 pixels
    assert not params["conv1"]["b"].any()
    assert abs(params["dense3"]["w"]).max() == pytest.approx(np.sqrt(6 / 94), rel=0.01)
    shapes = jax.eval_shape(lambda key: predecessor().init(key, 784, 10), jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == 356234


def test_what_the_documentation_says_of_single_changes_is_what_their_runs_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_why import find

    store, page = Store(BENCH / "waffle-why"), (BENCH.parent / "docs" / "waffle.md").read_text(encoding="utf-8")
    said = {
        "Local on A": {
            "as in the table": "98.09 as in the table",
            "tested on all 10,000 images": "98.13 on all 10,000 test images",
            "images padded to 32 x 32": "98.19 with images padded",
            "pixels from 0 to 1": "97.69 with pixels from 0 to 1",
            "learning rate 0.01, momentum 0.9": "97.99 with momentum",
            "Glorot's beginning, biases 0": "97.59 from Glorot's",
            "never shuffled": "97.59 never shuffled",
            "tanh": "97.49 with tanh",
            "means in place of maxima": "97.29 with means",
            "tanh and means, images padded to 32 x 32 (1998)": "97.59 with the network of 1998",
            "the network of the earlier report": "97.39 with the network of the authors' earlier",
            "3000 images": "96.49 with half the images",
        },
        "SCAFFOLD on B": {
            "another seed": "98.46 with another seed",
            "option I": "60.89 with option I",
            "server's step 0.5": "98.36 with half",
            "learning rate 0.03": "98.07 with a learning rate",
            "pixels from 0 to 1": "98.75 with pixels",
        },
        "APFL on A": {
            "share of the own model kept at 0.75": "98.29 with a share of three",
            "share of the own model kept at 0.95": "97.59 with 19 in 20",
        },
    }
    words = " ".join(page.split())
    for question, changes in said.items():
        for name, sentence in changes.items():
            assert sentence in words
            assert f"{100 * find(store, question, name).accuracy[1:].max():.2f}" == sentence.split()[0]


@pytest.mark.usefixtures("shared_data")
def test_variations_change_what_they_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_why import QUESTIONS, on_all_test_images

    silos = silos_of(TINY)
    tested = on_all_test_images(silos)
    assert (tested.sizes("test")[0], tested.sizes("train"), tested.sizes("validation")) == (
        10000, silos.sizes("train"), silos.sizes("validation"),
    )  # fmt: skip
    own, all_images = silos.silos[0].rows("test"), tested.silos[0].rows("test")
    place = np.flatnonzero((all_images[0] == own[0][0]).all(axis=1))
    assert all_images[1][place] == own[1][0]
    pixels = QUESTIONS["SCAFFOLD on B"]["pixels from 0 to 1"].change(silos).silos[2].X
    assert (abs(pixels * 255 - np.round(pixels * 255)).max(), pixels.min(), pixels.max()) == pytest.approx(
        (0, 0, 1), abs=1e-3
    )
    one = QUESTIONS["Local on A"]["tested on all 10,000 images"]
    assert run_cell(TINY, one.recipe, one.change(silos), model=one.model()).accuracy.shape == (5,)

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
        0.7: {"A": [fading_at(8, 0.70)], "B": [fading_at(7, 0.90)]},
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
    assert choose({0.7: {"A": [fading_at(8, 0.9)]}, 0.8: {"A": [fading_at(7, 0.9)]}}) == 0.8


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

    own = {"long": {}, "short": {}, "other": {}}
    for one in read(BENCH / "waffle-cells"):
        setting = one.about["setting"]
        if (setting["model"], one.about["method"]) == ("lenet5", "weight_erosion") and setting["rounds"] in (25, 100):
            own["long" if setting["rounds"] == 100 else "short"][setting["distribution"]] = one.cell
        elif (setting["rounds"], one.about["method"]) == (100, name_of(Setting(model="lenet5"), 0.9)):
            own["other"][setting["distribution"]] = one.cell
    first_alone = {d: round(100 * faded(cell)) + 1 for d, cell in own["long"].items()}
    assert first_alone == {"A": 59, "B": 65, "C": 64, "A*": 71, "B*": 66}
    assert {faded(cell) for cell in own["short"].values()} == {0.84}
    assert {d: faded(cell) for d, cell in own["other"].items()} == {"B": 0.56}
    on_b = [validated(own[which]["B"]) for which in ("other", "long")]
    assert on_b == pytest.approx([0.9981, 0.9990], abs=1e-4)
    early = [distances(cell)[:10].mean() for cell in own["long"].values()]
    late = [np.nanmean(distances(cell)[40:60]) for cell in own["long"].values()]
    assert (min(early), max(early)) == pytest.approx((1.2, 1.5), abs=0.06)
    assert (min(late), max(late)) == pytest.approx((1.9, 3.6), abs=0.06)


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


def test_what_the_documentation_says_of_local_training_is_what_its_runs_say(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    from waffle_why import find

    store, page = Store(BENCH / "waffle-why"), (BENCH.parent / "docs" / "waffle.md").read_text(encoding="utf-8")
    said = {
        "as in the table": "98.09 as in the table", "tested on all 10,000 images": "98.13 on all 10,000 test images",
        "pixels from 0 to 1": "97.69 with pixels from 0 to", "Glorot's beginning, biases 0": "97.59 from Glorot's",
    }  # fmt: skip
    for name, words in said.items():
        assert words in page
        assert f"{100 * find(store, 'Local on A', name).accuracy[1:].max():.2f}" == words.split()[0]


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

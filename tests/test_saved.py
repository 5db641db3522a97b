"""Saved models: what is loaded predicts as what was saved, and what was changed since is refused."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

import confrere as cf
from confrere.cli.monitor import labels_of, misfits_in
from confrere.saved import drift, load_model, save_model
from confrere.saved.drift import chance_of, holm, stability_index
from confrere.saved.reference import counts_like, feature_reference, reference_counts

PARTS = ("CARD.md", "manifest.json", "model.safetensors")


def table(rows=240, seed=0):
    """Two clinics with numbers, codes and gaps."""
    import polars as pl

    rng = np.random.default_rng(seed)
    age, sex = rng.normal(60, 10, rows), rng.choice(["f", "m"], rows)
    ill = rng.random(rows) < 1 / (1 + np.exp(-(age - 60) / 8 - (sex == "m")))
    gap = rng.random(rows) < 0.1
    return pl.DataFrame({
        "age": np.where(gap, np.nan, age), "sex": sex, "ill": np.where(ill, "yes", "no"),
        "clinic": np.where(np.arange(rows) % 2, "a", "b"),
    })  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    silos = cf.Silos.from_table(table(), label="ill", silo="clinic").split(test=0.25, seed=0)
    answer = cf.personalise(silos, "a")
    folder = save_model(answer, silos, tmp_path_factory.mktemp("models") / "a", {"seed": 0})
    return silos, answer, folder


def test_a_loaded_model_predicts_as_the_saved_one_from_tables_and_from_numbers(made):
    silos, answer, folder = made
    saved = load_model(folder)
    new = table(20, seed=1).drop("ill", "clinic")
    np.testing.assert_array_equal(saved.model.predict_proba(new), answer.model.predict_proba(new))
    np.testing.assert_array_equal(saved.model.predict(silos["a"].X), answer.model.predict(silos["a"].X))
    assert saved.model.label_names == ("no", "yes")


@pytest.mark.parametrize(("cell", "words"), [
    ("old", "'old' is no number: mend the cell"),
    ("61,5", r"a point, not a comma\): mend the cell"),
    ("2020-01-01", "'2020-01-01' is no number: mend the cell"),
])  # fmt: skip
def test_a_cell_that_is_no_number_is_refused_with_what_can_be_done_at_prediction(made, cell, words):
    import polars as pl

    new = table(5, seed=1).with_columns(age=pl.Series(["60", cell, "", "NA", "50"]))
    with pytest.raises(ValueError, match=f"column 'age', row 1 .*{words}, leave it blank if .*, or leave the row out"):
        made[1].model.predict(new)


def test_the_manifest_has_the_key_of_what_was_random(made, tmp_path):
    silos, answer, folder = made
    assert load_model(folder).manifest["key"] == answer.key == 0
    for k, key in enumerate((7, (0, 7))):
        saved = save_model(dataclasses.replace(answer, key=key), silos, tmp_path / str(k))
        assert load_model(saved).manifest["key"] == (7 if k == 0 else [0, 7])


def test_the_folder_holds_a_model_a_manifest_and_a_card_and_nothing_else(made):
    silos, answer, folder = made
    assert sorted(file.name for file in folder.iterdir()) == sorted(PARTS)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["user"] == "a"
    assert manifest["weights"] == pytest.approx(dict(answer.weights))
    assert manifest["data"]["train_rows"] == list(silos.sizes("train"))
    assert set(manifest["versions"]) >= {"confrere", "jax", "numpy"}
    card = (folder / "CARD.md").read_text()
    for words in ("# A model for a", answer.reason, "`ill` (no, yes)", "What left each silo"):
        assert words in card
    assert not [file for file in folder.parent.iterdir() if file.name.startswith(".")]


def test_a_model_that_was_changed_is_refused(made, tmp_path):
    silos, answer, _ = made
    folder = save_model(answer, silos, tmp_path / "model")
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match="SHA-256"):
        load_model(folder)


@pytest.mark.parametrize("change", [
    lambda m: m | {"rows": m["rows"] + 1},
    lambda m: m | {"user": "b"},
    lambda m: m | {"more": 1},
    lambda m: {name: value for name, value in m.items() if name != "notes"},
    lambda m: m | {"sha256": {"model.safetensors": m["sha256"]["model.safetensors"]}},
    lambda m: m | {"sha256": None},
    lambda m: m | {"rows": float("nan")},
], ids=["a number", "the user", "a field more", "a field less", "no sum", "no sums", "no number"])  # fmt: skip
def test_a_manifest_that_was_edited_is_refused(made, tmp_path, change):
    *_, folder = made
    manifest = json.loads((folder / "manifest.json").read_text())
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps(change(manifest)))
    with pytest.raises(ValueError, match=r"manifest\.json was changed since it was saved"):
        load_model(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest, sort_keys=True))  # blanks and order are no matter
    assert load_model(tmp_path).manifest == manifest


def test_names_are_text_in_the_card(tmp_path):
    rows = [(X, (X[:, 0] > 0).astype(int)) for X in np.random.default_rng(0).normal(size=(2, 40, 2))]
    silos = cf.Silos.from_arrays(rows, names=["a|<b>", "R&D [x](y)"])
    answer = cf.personalise(silos, "a|<b>", "ridge_local")
    card = (save_model(answer, silos, tmp_path / "m", {"overridden": {"without": "<i>"}}) / "CARD.md").read_text()
    assert "# A model for a\\|&lt;b>" in card
    assert "| R&amp;D \\[x](y) |" in card
    assert "Chosen by hand: without &lt;i>." in card
    for raw in ("<b>", "<i>", "R&D", " [x]", "a|"):
        assert raw not in card


def test_what_is_no_model_is_said_to_be_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no saved model: there is no manifest\.json"):
        load_model(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(ValueError, match="format 99"):
        load_model(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        load_model(tmp_path)


def test_nothing_is_written_over_unless_asked(made, tmp_path):
    silos, answer, _ = made
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    for replace in (False, True):
        with pytest.raises(ValueError, match="is no saved model"):
            save_model(answer, silos, tmp_path / "notes", replace=replace)
    folder = save_model(answer, silos, tmp_path / "model")
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(ValueError, match="holds a model already"):
        save_model(answer, silos, folder)
    assert (folder / "manifest.json").read_bytes() == before
    save_model(answer, silos, folder, {"again": True}, replace=True)
    assert load_model(folder).manifest["config"] == {"again": True}
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model", "notes"]


def test_a_network_and_an_amount_can_be_saved_too(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(X, 500 + 90 * X[:, 0] + 9 * rng.normal(size=40)) for X in rng.normal(size=(2, 40, 3))]
    silos = cf.Silos.from_arrays(rows, names=["a", "b"])
    for name, model in (("linear", cf.models.linear()), ("mlp", cf.models.mlp([4], "regression"))):
        answer = cf.personalise(silos, "a", "local", model, grid={"lr": [0.05]}, rounds=5)
        saved = load_model(save_model(answer, silos, tmp_path / name))
        np.testing.assert_array_equal(saved.model.predict(rows[1][0]), answer.model.predict(rows[1][0]))
        if name == "mlp":  # told in the label's own units
            assert abs(saved.model.predict(rows[1][0]).mean() - 500) < 60


def test_other_silos_scales_are_not_saved(tmp_path):
    with pytest.warns(cf.data.DataWarning):
        silos = cf.Silos.from_table(table(), label="ill", silo="clinic", scale="silo")
    answer = cf.personalise(silos, "a", "ridge_local")
    manifest = json.loads((save_model(answer, silos, tmp_path / "m") / "manifest.json").read_text())
    owners = [set(column["own"]) for column in manifest["encoding"]["columns"] if column["kind"] == "numeric"]
    assert owners == [{"a"}]


# --- drift ---


def test_the_stability_index_and_the_test_are_those_of_the_formulas():
    from scipy.stats import chi2_contingency

    before, now = np.array([40, 30, 30]), np.array([10, 60, 30])
    p, q = (before + 0.5) / 101.5, (now + 0.5) / 101.5
    assert stability_index(before, now) == pytest.approx(((q - p) * np.log(q / p)).sum())
    assert chance_of(before, now) == pytest.approx(chi2_contingency([before, now], correction=False).pvalue)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize(
    "values", [np.arange(100.0), np.array([0.0, 1] * 50), np.ones(30), np.repeat([1.0, 9], [99, 1])]
)
def test_training_rows_counted_again_give_their_own_reference(values):
    reference = feature_reference(values)
    np.testing.assert_array_equal(counts_like(reference, values), reference_counts(reference))
    assert reference_counts(reference).sum() == len(values)


def test_a_value_that_no_training_row_had_is_counted():
    reference = feature_reference(np.array([0.0, 1, 1]))
    assert counts_like(reference, np.array([0.0, 2, 3])).tolist() == [1, 0, 2]


def test_rows_like_those_of_training_are_fine_and_shifted_ones_are_not(made):
    silos, _, folder = made
    saved = load_model(folder)
    X, y = silos["a"].rows("train")
    same = drift(saved, X, y)
    assert same.verdict == "fine"
    assert max(f.index for f in same.features) < 1e-9
    moved = drift(saved, X + np.array([2.0, 0, 0]))
    assert (moved.verdict, moved.features[0].feature, moved.features[0].movement) == ("watch", "age", "much")
    assert moved.labels == ()
    wrong = drift(saved, X, 1 - y)
    assert wrong.verdict == "retrain"
    assert "expects" in wrong.reason
    assert drift(saved, X[:5]).verdict == "too few rows"
    json.dumps(wrong.to_dict())


def test_rows_that_predict_refuses_are_named_and_the_model_is_not_judged_by_them(made, tmp_path):
    new, saved = table(40, seed=4), load_model(made[2])
    new[30, "age"] = 1e9
    new.write_csv(tmp_path / "new.csv")
    [(misfit, words)] = misfits_in(saved, tmp_path / "new.csv", 40)
    assert misfit.rows.tolist() == [30]
    assert "column 'age', row 30 (counted from 0): 1e+09 is more than 1000 standard deviations" in words
    X, y = (values.copy() for values in made[0]["a"].rows("train"))
    X[30, 0] = 1e8
    y[30] = 1 - saved.model.predict_proba(X)[30].argmax()  # as wrong as can be
    found = drift(saved, X, y, {"age (far off)": misfit.rows})
    assert drift(saved, X, y).verdict == "retrain"
    assert (found.verdict, found.refused, found.labelled) == ("fine", (30,), len(y) - 1)
    assert "`predict` refuses row 30 (counted from 0)" in found.reason
    assert "no label" not in found.reason


def test_rows_without_a_label_count_for_features_only(made):
    silos, _, folder = made
    saved = load_model(folder)
    X, y = silos["a"].rows("train")
    some = np.where(np.arange(len(y)) % 3 == 0, np.nan, y)
    known = ~np.isnan(some)
    found, alone = drift(saved, X, some), drift(saved, X[known], y[known])
    assert (found.rows, found.labelled) == (len(y), known.sum())
    assert (found.labels, found.loss, found.expected) == (alone.labels, alone.loss, alone.expected)
    assert found.features == drift(saved, X).features
    assert f"{(~known).sum()} of {len(y)} rows have no label" in found.reason
    assert drift(saved, X, np.full(len(y), np.nan)) == drift(saved, X)
    few = drift(saved, X, np.where(np.arange(len(y)) < 5, 1 - y, np.nan))
    assert few.verdict == "fine"
    assert "the other 5, too few to tell anything" in few.reason


def told_labels(manifest, column, tmp_path):
    """What `confrere monitor` makes of a column of labels."""
    import polars as pl

    pl.DataFrame({"ill": column}, strict=False).write_csv(tmp_path / "new.csv")
    return labels_of(SimpleNamespace(manifest=manifest), tmp_path / "new.csv")


CLASSES = {"model": {"task": "classification"}, "labels": ["no", "yes"], "encoding": {"label": "ill", "gone": {}}}
AMOUNTS = {**CLASSES, "model": {"task": "regression"}, "labels": None}


def test_monitor_takes_blank_labels_as_not_known_yet(tmp_path):
    nan = np.nan
    for manifest, column, numbers in (
        (CLASSES, ["no", None, "yes", "NA"], [0, nan, 1, nan]),
        (AMOUNTS, [1.5, None, 2, 1e3], [1.5, nan, 2, 1000]),
    ):
        np.testing.assert_array_equal(told_labels(manifest, column, tmp_path), numbers)
    assert told_labels(CLASSES, ["", None, "?"], tmp_path) is None
    with pytest.raises(ValueError, match=r"label 'ill', row 1 .* is 'yess', not no or yes: mend it"):
        told_labels(CLASSES, [None, "yess"], tmp_path)
    with pytest.raises(ValueError, match=r"label 'ill', row 2 .* is 'high', which is no number"):
        told_labels(AMOUNTS, [None, "2", "high"], tmp_path)


def test_calibration_is_judged_by_the_models_own_probabilities(made):
    silos, _, folder = made
    saved = load_model(folder)
    X = np.concatenate([silos["a"].X] * 5)
    chance = saved.model.predict_proba(X)[:, 1]
    honest = [drift(saved, X, (np.random.default_rng(s).random(len(X)) < chance).astype(int)) for s in range(20)]
    assert sum(d.verdict == "retrain" for d in honest) <= 2  # one in fifty, by construction
    assert np.mean([d.loss - d.expected for d in honest]) == pytest.approx(0, abs=0.01)

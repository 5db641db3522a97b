"""check, train, predict, monitor and doctor through the installed entry point, on good and bad input."""

import inspect
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import typer

import confrere as cf
from confrere.cli.check import check, show
from confrere.cli.train import decided, personal_answer, train
from confrere.data.choose import Choice, chosen_silos
from confrere.data.overview import overview
from tests.test_cli import confrere
from tests.test_saved import PARTS, table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Patients of two clinics, as one file, as a folder, and a model for clinic a."""
    place = tmp_path_factory.mktemp("clinics")
    patients = weighed()
    patients.write_csv(place / "patients.csv")
    (place / "by-clinic").mkdir()
    for name in ("a", "b"):
        patients.filter(pl.col("clinic") == name).drop("clinic").write_csv(place / "by-clinic" / f"{name}.csv")
    weighed(60, seed=1).drop("clinic").write_csv(place / "new.csv")
    done = confrere("train", "patients.csv", *NAMED, "--user", "a", "--out", "model", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["folder"] == "model"
    return place


def weighed(rows=240, seed=0):
    """The clinics' table with a number of which none is missing."""
    return table(rows, seed).with_columns(weight=pl.Series(np.random.default_rng(seed).normal(75, 12, rows)))


def put(rows, column, place, value):
    """The table with one cell changed."""
    return rows.with_columns(
        pl.when(pl.int_range(rows.height) == place).then(pl.lit(value)).otherwise(column).alias(column)
    )


NAMED = ("--label", "ill", "--silo", "clinic")


def test_check_shows_columns_labels_and_gaps_of_every_silo(folder):
    done = confrere("check", "patients.csv", *NAMED, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert list(seen["silos"]) == ["a", "b"]
    assert seen["classes"] == ["no", "yes"]
    patients = table()
    for name, silo in seen["silos"].items():
        own = patients.filter(pl.col("clinic") == name)
        assert silo["rows"] == own.height
        assert silo["label"] == {word: own.filter(pl.col("ill") == word).height for word in ("no", "yes")}
        assert silo["columns"]["age"]["missing"] == own["age"].is_nan().sum()
    shown = confrere("check", "by-clinic", "--label", "ill", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "missing values by silo" in shown.stdout


def test_check_hides_small_groups_of_others_but_not_of_ones_own(tmp_path):
    rows = pl.DataFrame(
        {"age": np.arange(40.0) ** 2, "ill": ["yes"] * 3 + ["no"] * 37, "clinic": ["a"] * 20 + ["b"] * 20}
    )
    rows.write_csv(tmp_path / "p.csv")
    seen = json.loads(confrere("check", "p.csv", *NAMED, "--json", cwd=tmp_path).stdout)
    assert seen["silos"]["a"]["label"] == {"no": None, "other classes": None}
    own = json.loads(confrere("check", "p.csv", *NAMED, "--user", "a", "--json", cwd=tmp_path).stdout)
    assert own["silos"]["a"]["label"] == {"no": 17, "yes": 3}


def test_check_names_no_rare_level_of_others_and_shows_no_mean_that_tells_of_few(tmp_path):
    rows = pl.DataFrame({
        "tribe": ["rare"] + ["rarer"] * 2 + ["usual"] * 37 + ["usual"] * 20 + ["second"] * 20 + ["x", "y", "z"],
        "hiv": [1.0] * 3 + [0.0] * 77 + [0.0, 1.0, 0.0], "age": np.arange(83.0) ** 2, "ill": [*"01" * 41, "1"],
        "clinic": ["a"] * 40 + ["b"] * 40 + ["c"] * 3,
    })  # fmt: skip
    rows.write_csv(tmp_path / "p.csv")
    done = confrere("check", "p.csv", *NAMED, "--json", cwd=tmp_path)
    assert not any(word in done.stdout for word in ("rare", "tribe=x", '"x"'))
    seen = json.loads(done.stdout)
    a, b, c = (seen["silos"][name] for name in "abc")
    assert a["columns"]["tribe"]["levels"] == {"other levels": None}
    assert b["columns"]["tribe"]["levels"] == {"usual": 20, "second": 20}
    assert a["columns"]["hiv"]["mean"] is a["columns"]["hiv"]["std"] is None
    assert a["columns"]["age"]["mean"] == pytest.approx((np.arange(40.0) ** 2).mean(), abs=0.5)
    assert c["rows"] is None
    assert "tribe=other" in seen["features"]
    own = json.loads(
        confrere("check", "p.csv", *NAMED, "--user", "a", "--min-level", "1", "--json", cwd=tmp_path).stdout
    )
    assert own["silos"]["a"]["columns"]["tribe"]["levels"] == {"usual": 37, "rarer": 2, "rare": 1}
    assert own["silos"]["a"]["columns"]["hiv"]["mean"] == pytest.approx(3 / 40)
    assert "tribe=rare" in own["features"]
    assert "tribe=x" not in own["features"]
    shown = confrere("check", "p.csv", *NAMED, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    refused = confrere("check", "p.csv", *NAMED, "--min-group", "1", cwd=tmp_path)
    assert refused.returncode == 2
    assert "never shown" in refused.stderr


def test_check_names_no_class_that_only_few_of_others_have():
    ill = ["flu", "none"] * 20 + ["plague", "pox"] + ["flu", "none"] * 10
    rows = pl.DataFrame({"age": np.arange(62.0) % 31, "ill": ill, "clinic": ["a"] * 42 + ["b"] * 20})
    silos = cf.Silos.from_table(rows, label="ill", silo="clinic")
    seen = overview(silos, own="b")
    assert "plague" not in str(seen)
    assert seen["classes"] == ["flu", "none"]
    assert seen["silos"]["a"]["label"] == {"flu": None, "none": None, "other classes": None}
    assert seen["silos"]["b"]["label"] == {"flu": 10, "none": 10}
    mine = overview(silos, own="a")
    assert mine["silos"]["a"]["label"] == {"flu": 20, "none": 20, "plague": 1, "pox": 1}
    assert "plague" in overview(silos.only(["a", "b"]), least=1)["classes"]


def test_check_names_no_feature_of_a_level_that_only_few_of_others_have():
    diag = ["flu", "cold"] * 20 + ["ebola"] + ["flu", "cold"] * 10
    rows = pl.DataFrame({"diag": diag, "ill": [*"0011" * 15, "1"], "clinic": ["a"] * 41 + ["b"] * 20})
    silos = cf.Silos.from_table(rows, label="ill", silo="clinic")
    seen = overview(silos, own="b")
    assert "ebola" not in str(seen)
    assert seen["features"] == seen["made"]["diag"]["features"] == ["diag=cold", "diag=flu", "diag=hidden levels"]
    assert "diag=ebola" in overview(silos, own="a")["features"]


def test_check_shows_no_mean_of_counts_from_which_single_patients_follow():
    rows = pl.DataFrame({"falls": [0] * 237 + [1, 2, 3], "age": np.arange(240) % 31 / 7, "ill": ["0", "1"] * 120})
    seen = overview(cf.Silos.from_table(rows, label="ill", silo=None))["silos"]["all"]["columns"]
    assert seen["falls"]["mean"] is seen["falls"]["std"] is None
    assert (seen["age"]["mean"], seen["age"]["std"]) == (2.09, 1.26)


def test_check_says_what_was_made_of_every_column(capsys):
    rows = pl.DataFrame({
        "age": [*range(30, 69), None], "sex": ["f", "m"] * 20, "day": ["2020-01-01"] * 40, "ill": ["0", "1"] * 20,
    })  # fmt: skip
    with pytest.warns(cf.data.DataWarning):
        silos = cf.Silos.from_table(rows, label="ill", silo=None)
    show(overview(silos))
    shown = capsys.readouterr().out
    assert "1 silo, 3 features" in shown
    for words in (r"age .* scaled alike; zeros and", r"sex .* zeros and ones: m", r"day .* left out"):
        assert re.search(words, shown), words


def test_check_says_that_a_user_is_excluded(tmp_path, capsys):
    weighed(40).write_csv(tmp_path / "p.csv")
    with pytest.raises(typer.Exit):
        check(data=[str(tmp_path / "p.csv")], label="ill", silo="clinic", user="a", exclude=["a"])
    assert "silo 'a' is excluded, and can be no user then: take it out of exclude" in capsys.readouterr().err


def test_silos_that_take_no_part_are_not_read(tmp_path):
    for name, clinic in (("north", "a"), ("south", "b")):
        table().filter(pl.col("clinic") == clinic).drop("clinic").write_csv(tmp_path / f"{name}.csv")
    for text, words in (("age,sex,ill\n", "has no rows"), ("", "is empty")):
        (tmp_path / "west.csv").write_text(text)
        with pytest.raises(ValueError, match=rf"west\.csv {words}: leave this silo out \(--exclude west\)"):
            chosen_silos(Choice((str(tmp_path),), label="ill"))
    for chosen in ({"exclude": ("west",)}, {"silos": ("north", "south")}):
        assert chosen_silos(Choice((str(tmp_path),), label="ill", **chosen)).names == ("north", "south")
    with pytest.raises(ValueError, match="no silo 'wset'; did you mean 'west'"):
        chosen_silos(Choice((str(tmp_path),), label="ill", exclude=("wset",)))


def test_the_label_is_no_feature(tmp_path):
    table().write_csv(tmp_path / "p.csv")
    choice = Choice((str(tmp_path / "p.csv"),), label="ill", silo="clinic", features=("ill",))
    with pytest.raises(ValueError, match="column 'ill' is the label, so it cannot be named in features"):
        chosen_silos(choice)


def test_check_tells_the_quirks_of_the_four_hospitals(shared_data):
    shown = " ".join(confrere("check", "heart_disease").stdout.split())
    told = shown[shown.index("quantities left the silos") :]
    assert "chol (no value)" in shown
    for words in (
        "switzerland: skewed labels, absent in 8 of 123 rows (7%)",
        "switzerland: no value at all of chol",
        "hungary: mostly missing: slope (65%), ca (all but fewer than 5), thal (90%)",
        "silo 'switzerland': chol = 0 is taken as missing (in all rows)",
        "silo 'va': chol = 0 is taken as missing (in some rows)",
    ):
        assert words in told
    assert "cleveland" not in told


def test_check_tells_of_one_class_and_of_zeros_that_look_like_gaps(tmp_path):
    rng = np.random.default_rng(0)
    chol = rng.normal(220, 25, 90).round()
    chol[[3, 8, 12, 25, 28]] = 0  # of clinic a
    chol[60:] = 0  # all of clinic c
    pl.DataFrame({
        "chol": chol, "children": rng.integers(0, 30, 90), "ill": np.where(np.arange(90) % 2, "yes", "no").tolist(),
        "clinic": np.repeat(["a", "b", "c"], 30),
    }).with_columns(ill=pl.when(pl.col("clinic") == "b").then(pl.lit("no")).otherwise("ill")).write_csv(
        tmp_path / "p.csv"
    )  # fmt: skip
    choice = Choice((str(tmp_path / "p.csv"),), label="ill", silo="clinic")
    seen = overview(chosen_silos(choice))
    assert seen["quirks"] == ["b: all 30 rows are of one class (no): trained alone, a model learns nothing there"]
    zeros = [note for note in seen["notes"] if "--missing chol=0" in note]
    assert [note.split(",")[0] for note in zeros] == [
        "silo 'a': column 'chol' is 0 in some rows", "silo 'c': column 'chol' is 0 in all rows",
    ]  # fmt: skip
    assert not any("children" in note for note in seen["notes"])
    mended = overview(chosen_silos(replace(choice, options={"missing": {"chol": [0.0]}})))
    assert "silo 'a': chol = 0 is taken as missing (in some rows)" in mended["notes"]
    assert not any("--missing" in note for note in mended["notes"])


def test_train_writes_a_model_and_says_whom_it_listened_to(folder):
    assert sorted(file.name for file in (folder / "model").iterdir()) == sorted(PARTS)
    again = confrere("train", "patients.csv", *NAMED, "--user", "a", "--out", "model", cwd=folder)
    assert again.returncode == 1
    assert "holds a model already" in again.stderr
    assert "--force" in again.stderr


def test_train_states_what_was_overridden(folder):
    chosen = ("--exclude", "b", "--features", "age", "--algorithm", "ridge_local")
    done = confrere("train", "patients.csv", *NAMED, "--user", "a", "--out", "alone", *chosen, cwd=folder)
    assert done.returncode == 0, done.stderr
    manifest = json.loads((folder / "alone" / "manifest.json").read_text())
    assert manifest["config"]["overridden"] == {"without": "b", "features": "age", "algorithm": "ridge_local"}
    assert manifest["data"]["silos"] == ["a"]
    assert set(manifest["features"]) == {"age", "age=missing"}
    assert "Chosen by hand" in (folder / "alone" / "CARD.md").read_text()


def test_train_refuses_a_network_where_there_is_none(tmp_path, capsys):
    with pytest.raises(typer.Exit):
        train(data=["titanic"], user="36+", out=tmp_path / "never", algorithm="ridge_local", model="mlp")
    assert "--algorithm ridge_local is for linear models only" in capsys.readouterr().err
    with pytest.raises(typer.Exit):
        train(data=["titanic"], user="36+", out=tmp_path / "never", model="mlp", prevalence=0.4)
    assert "--prevalence is heeded by --algorithm auto with --model linear only" in capsys.readouterr().err


def test_train_hands_on_how_frequent_the_second_class_is(monkeypatch):
    monkeypatch.setattr(cf, "personalise", lambda *_, **asked: asked)
    silos = cf.Silos.from_table(table(), label="ill", silo="clinic")
    assert personal_answer(silos, "a", "auto", "linear", 0.4, None, 0, None)["prevalence"] == 0.4
    assert decided("auto", "mlp", 0.4) == {"model": "mlp", "prevalence": "0.4"}
    assert "prevalence" in inspect.signature(train).parameters


def test_predict_gives_a_class_and_probabilities_for_every_row(folder):
    done = confrere("predict", "model", "new.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = pl.read_csv(done.stdout.encode())
    assert found.columns == ["row", "prediction", "p(no)", "p(yes)", "low", "high", "possible"]
    assert found.height == 60
    np.testing.assert_allclose(found["p(no)"] + found["p(yes)"], 1, atol=1e-5)
    assert ((found["p(yes)"] > 0.5) == (found["prediction"] == "yes")).all()
    written = confrere("predict", "model", "new.csv", "--out", "found.csv", cwd=folder)
    assert written.returncode == 0, written.stderr
    assert (folder / "found.csv").read_text() == done.stdout
    assert confrere("predict", "model", "new.csv", "--out", "found.csv", cwd=folder).returncode == 1


@pytest.mark.parametrize(("change", "words"), [
    (lambda t: t.drop("age"), ["'age'", "lacks"]),
    (lambda t: t.with_columns(age=pl.Series(["old", *map(str, range(59))])), ["'age'", "row 0", "'old'"]),
    (lambda t: t.head(0), ["no rows"]),
    (lambda t: put(t, "sex", 2, "x"), ["'sex'", "row 2", "'x'", "('f', 'm')"]),
    (lambda t: put(t, "sex", 3, "M"), ["'sex'", "row 3", "'M'", "('f', 'm')"]),
    (lambda t: put(t, "sex", 1, None), ["'sex'", "row 1", "missing"]),
    (lambda t: put(t, "weight", 4, None), ["'weight'", "row 4", "missing"]),
    (lambda t: t.with_columns(weight=pl.lit(None)), ["'weight'", "row 0", "60 cells"]),
    (lambda t: put(t, "age", 5, 1e30), ["'age'", "row 5", "1e+30", "standard deviations"]),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused_by_name(folder, change, words):
    change(weighed(60, seed=1).drop("clinic")).write_csv(folder / "bad.csv")
    done = confrere("predict", "model", "bad.csv", "--out", "never.csv", cwd=folder)
    assert done.returncode == 1
    assert not (folder / "never.csv").exists()
    for word in words:
        assert word in done.stderr


def test_monitor_tells_rows_that_moved(folder):
    done = confrere("monitor", "model", "new.csv", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["verdict"] in ("fine", "watch")
    assert [told["name"] for told in report["labels"]] == ["no", "yes"]
    older = weighed(60, seed=1).drop("clinic", "ill").with_columns(pl.col("age") + 30)
    older.write_csv(folder / "older.csv")
    shown = confrere("monitor", "model", "older.csv", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "watch: age moved much" in shown.stdout


def test_monitor_counts_what_training_never_saw_as_drift(folder):
    strange = weighed(60, seed=1).drop("clinic", "ill")
    strange = strange.with_columns(sex=pl.when(pl.int_range(60) % 2 == 0).then(pl.lit("x")).otherwise("sex"))
    strange.write_csv(folder / "strange.csv")
    done = confrere("monitor", "model", "strange.csv", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    moved = {feature["feature"]: feature["movement"] for feature in report["features"]}
    assert moved["sex (unknown level)"] == "much"
    assert report["verdict"] == "watch"


def test_a_model_that_was_tampered_with_predicts_nothing(folder, tmp_path):
    shutil.copytree(folder / "model", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors").write_bytes(b"x")
    done = confrere("predict", "model", str(folder / "new.csv"), cwd=tmp_path)
    assert done.returncode == 1
    assert "SHA-256" in done.stderr


BAD = {
    "missing file": (None, "there is no file or folder"),
    "empty file": (b"", "is empty"),
    "no rows": (b"age,ill,clinic\n", "no rows"),
    "wrong delimiter": (b"age:ill:clinic\n1:no:a\n2:yes:b\n", "no silo column 'clinic'"),
    "Latin-1": ("age,ill,clinic\n1,no,Z\u00fcrich\n2,yes,b\n".encode("latin-1"), "not in UTF-8"),
    "one class": (b"age,ill,clinic\n1,no,a\n2,no,b\n3,no,b\n", "only one class"),
    "no such silo": (b"age,ill,clinic\n" + b"1,no,x\n2,yes,b\n3,no,b\n" * 5, "no silo 'a'"),
    "nameless silo": (b"age,ill,clinic\n1,no,\n2,yes,b\n3,no,a\n", "no value in the silo column"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused_with_a_message_and_nothing_is_written(tmp_path, case):
    content, words = BAD[case]
    if content is not None:
        (tmp_path / "p.csv").write_bytes(content)
    done = confrere("train", "p.csv", *NAMED, "--user", "a", "--out", "model", cwd=tmp_path)
    assert done.returncode == (3 if content is None else 1)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("content", [
    b"\xef\xbb\xbfage;ill;clinic\n" + b"".join(b"%d;%s;%s\n" % (i, (b"1.0", b"0.0")[i % 2], (b"a", b"b")[i % 3 > 0])
                                              for i in range(60)),
])  # fmt: skip
def test_a_mark_at_the_start_semicolons_and_labels_with_a_point_are_understood(tmp_path, content):
    (tmp_path / "p.csv").write_bytes(content)
    done = confrere("check", "p.csv", *NAMED, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == ["0", "1"]


def test_a_hundred_thousand_rows_are_checked(tmp_path):
    table(100_000).write_csv(tmp_path / "p.csv")
    done = confrere("check", "p.csv", *NAMED, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert sum(silo["rows"] for silo in json.loads(done.stdout)["silos"].values()) == 100_000


def test_wrong_words_are_not_understood():
    assert confrere("train").returncode == 2
    assert confrere("check", "titanic", "--missing", "chol", "--label", "x").returncode in (1, 2)
    named = confrere("check", "titanic", "--label", "x")
    assert named.returncode == 1
    assert "label and silos of its own" in named.stderr


def test_doctor_finds_versions_and_devices():
    done = confrere("doctor", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["versions"]["jax"]
    assert report["devices"]
    assert "devices:" in confrere("doctor").stdout

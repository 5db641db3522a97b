"""Reports of runs, through the installed entry point: what is on the page is what the run found."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import confrere as cf
from confrere.report.page import page
from confrere.runs.report import run_contents, write_run_report
from confrere.runs.run import opened
from tests.test_cli import confrere
from tests.test_saved import made, table  # noqa: F401

DATA = ("patients.csv", "--label", "ill", "--silo", "clinic", "--seeds", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A comparison of clinics without auto, and its report."""
    folder = tmp_path_factory.mktemp("reports")
    table(120).write_csv(folder / "patients.csv")
    chosen = ("--algorithms", "ridge_local,fedsgd", "--features", "age,sex", "--out", "run", "--json")
    done = confrere("compare", *DATA, *chosen, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def contents(place):
    return run_contents(opened(place / "run"))


def words_of(text: str) -> str:
    """A page without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text).replace("&#x27;", "'"))


def test_a_comparison_says_where_its_report_is(place):
    said = json.loads((place / "said.json").read_text())
    assert said["report"] == str((place / "run" / "report.html").resolve())
    text = (place / "run" / "report.html").read_text(encoding="utf-8")
    assert text.endswith("</html>\n")
    assert "Chosen by the user: features: age, sex." in text
    assert (
        "a model was made for its own patients by one model for all (FedSGD), and compared with one trained alone"
        in text
    )


def test_the_page_tells_the_tables_numbers(place, contents):
    said = json.loads((place / "said.json").read_text())
    assert {h.name for h in contents.hospitals} == {"a", "b"}
    for hospital in contents.hospitals:
        for score in hospital.help.scores:
            if score.metric in said["metrics"]:
                shown = said["users"][hospital.name][score.algorithm][score.metric]
                assert score.mean == pytest.approx(shown["mean"])
        for gain in hospital.help.gains:
            if gain.metric == "log_loss":
                rows = said["differences"]["fedsgd"][gain.rival]["log_loss"]
                [row] = [r for r in rows if r["user"] == hospital.name]
                assert gain.gain == (pytest.approx(-row["difference"]), None, None)  # two splits: no interval


def test_the_model_on_the_page_is_the_one_that_the_study_measured(place, contents):
    finished = opened(place / "run")
    split = finished.silos.split(test=0.5, seed=0)
    for hospital in contents.hospitals:
        [cell] = [c for c in finished.result.of("fedsgd", hospital.name) if c.seed == 0]
        sure = hospital.sureness
        assert sure.scores["log_loss"]["together"] == pytest.approx(cell.value("log_loss", "last"), rel=1e-4)
        assert sure.scores["accuracy"]["together"] == pytest.approx(cell.value("accuracy", "last"))
        X, y = split[hospital.name].rows("test")
        w = np.array([e.together for e in hospital.learned.effects])
        proba = 1 / (1 + np.exp(-(X @ w[:-1] + w[-1])))
        assert sk.log_loss(y, proba) == pytest.approx(sure.scores["log_loss"]["together"], abs=1e-5)


def test_a_report_that_a_kill_prevented_is_written_by_resume(place):
    shutil.copytree(place / "run", place / "killed")
    (place / "killed" / "report.html").unlink()
    (place / "killed" / ".report.html.1").write_text("half a page")  # what a kill while writing leaves
    without = confrere("resume", "killed", "--no-report", "--json", cwd=place)
    assert json.loads(without.stdout)["report"] is None
    assert not (place / "killed" / "report.html").exists()
    done = confrere("resume", "killed", cwd=place)
    assert done.returncode == 0, done.stderr
    assert f"Report: {(place / 'killed' / 'report.html').resolve()}" in done.stdout.replace("\n", "")
    same = [words_of((place / f / "report.html").read_text()) for f in ("run", "killed")]
    assert strip_time(same[0]) == strip_time(same[1])


def strip_time(words: str) -> str:
    """A page without how long it took, which a resumed run does not know, and without the work of processors."""
    words = re.sub(r" Time: the whole comparison [\d.]+ s\.", "", words)
    return re.sub(r"busy for [\d.]+ s|[\d.e+-]+ k?J \([\d.e+-]+ kWh\)", "", words)


def test_the_report_is_written_again_for_one_user_and_other_groups(place):
    done = confrere("report", "run", "--user", "b", "--groups", "sex", "--out", "only/b.html", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"folder": "run", "report": str((place / "only" / "b.html").resolve())}
    text = words_of((place / "only" / "b.html").read_text(encoding="utf-8"))
    assert "Did learning together help b?" in text
    assert "Did learning together help a?" not in text
    assert "Accuracy by sex" in text
    assert "Accuracy by age" not in text


@pytest.mark.parametrize(("name", "asked", "words"), [
    ("run", {"users": ["c"]}, "has no user 'c'; it has a, b"),
    ("run", {"groups": ["height"]}, "no column 'height'"),
    ("nowhere", {}, "holds no run"),
    ("unfinished", {}, "`confrere resume .*unfinished`"),
    ("gone", {}, "the data of the run in .*gone are gone"),
    ("changed", {}, "have changed since the run in .*changed began"),
])  # fmt: skip
def test_what_cannot_be_reported_is_said_and_nothing_is_written(place, name, asked, words):
    kept = make_bad(place, name)
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        write_run_report(opened(place / name), **asked)
    assert sorted(place.rglob("*.html")) == kept


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (("report", "."), 3, "holds no run"),
    (("report", "unfinished"), 1, "`confrere resume unfinished`"),
    (("resume", "gone"), 3, "the data of the run in gone are gone"),
])  # fmt: skip
def test_the_command_says_what_is_wrong_with_a_folder(place, arguments, code, words):
    make_bad(place, arguments[1])
    done = confrere(*arguments, "--quiet", cwd=place)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr


def make_bad(place, name):
    """A run that is not finished, or whose data are gone or changed; and the pages that there are."""
    if name in ("unfinished", "gone", "changed") and not (place / name).exists():
        (place / name).mkdir()
        config = json.loads((place / "run" / "config.json").read_text())
        shutil.copy(place / "run" / "journal.jsonl", place / name)
        if name != "unfinished":
            shutil.copy(place / "run" / "study.json", place / name)
            config["data"]["path"] = str(place / name / "patients.csv")
        if name == "changed":
            table(120, seed=3).write_csv(place / name / "patients.csv")
        (place / name / "config.json").write_text(json.dumps(config))
    return sorted(place.rglob("*.html"))


def test_of_a_saved_model_the_card_is_shown(made, tmp_path):  # noqa: F811
    *_, folder = made
    shown = confrere("report", os.fspath(folder))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("# A model for a")
    said = json.loads(confrere("report", os.fspath(folder), "--out", str(tmp_path / "card.md"), "--json").stdout)
    assert (tmp_path / "card.md").read_text(encoding="utf-8") == said["card"] == (folder / "CARD.md").read_text()


def test_an_amount_and_a_network_have_reports_that_say_what_is_missing(tmp_path):
    patients = table(60).with_columns(days=pl.col("age").fill_nan(60) / 7 + pl.int_range(60) % 5).drop("ill")
    patients.write_csv(tmp_path / "stays.csv")
    words = ("stays.csv", "--label", "days", "--silo", "clinic", "--task", "regression", "--seeds", "2")
    chosen = ("--model", "mlp", "--algorithms", "fedsgd", "--user", "a", "--out", "run", "--quiet")
    done = confrere("compare", *words, *chosen, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "chosen by hand: model mlp" in done.stdout
    text = words_of((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    assert "Chosen by the user: model: mlp." in text
    assert "Not known: training alone was not studied" in text
    assert "there is nothing to compare it with" in text
    assert "Nothing is said of one model for all (FedAvg)" in text
    assert "Predictions suffer most when" in text
    assert "mean absolute error" in text.casefold()


@pytest.mark.slow
def test_the_report_on_a_network_has_one_trained_alone_beside_it(tmp_path):
    table(60).write_csv(tmp_path / "patients.csv")
    words = ("patients.csv", "--label", "ill", "--silo", "clinic", "--seeds", "2", "--model", "mlp")
    done = confrere(
        "compare", *words, "--algorithms", "local,fedavg", "--user", "a", "--out", "run", "--quiet", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    text = words_of((tmp_path / "run" / "report.html").read_text(encoding="utf-8"))
    [losses] = re.findall(r"Log-loss on these rows \(lower is better\): ([^.]*\.[^;]*?)\. ", text)
    assert "together" in losses
    assert "alone" in losses


def test_the_page_of_a_run_is_well_formed(contents):
    from tests.test_report import outline

    found = outline(page(contents))
    assert {link.removeprefix("#") for link in found.links} <= set(found.ids)


@pytest.mark.slow
def test_the_report_on_four_hospitals_agrees_with_scikit_learn(shared_data, tmp_path):
    chosen = ("--algorithms", "auto,ridge_local,fedavg", "--seeds", "3", "--out", "run", "--json")
    done = confrere("compare", "heart_disease", "--user", "all", *chosen, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = words_of(Path(json.loads(done.stdout)["report"]).read_text(encoding="utf-8")).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    silos = cf.data.heart_disease()
    for name in silos.names:
        found = np.array([alone_by_scikit_learn(silos.split(test=0.5, seed=s)[name]) for s in range(3)])
        (right, loss), (spread, wide) = found.mean(axis=0), found.std(axis=0, ddof=1)
        assert f"Did learning together help {name}?" in text
        assert f"training alone {100 * right:.1f} % ± {100 * spread:.1f} {loss:.3f} ± {wide:.3f}" in text
    assert "Accuracy by sex" in text
    assert "for women" in text


def alone_by_scikit_learn(silo):
    """Accuracy and log-loss of the ridge optimum, the intercept being penalised a tenth as much."""
    with_one = lambda X: np.column_stack([X, np.full(len(X), np.sqrt(10))])  # noqa: E731
    (X, y), (T, t) = silo.rows("train"), silo.rows("test")
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=5000).fit(with_one(X), y)
    proba = model.predict_proba(with_one(T))[:, 1]
    return sk.accuracy_score(t, proba > 0.5), sk.log_loss(t, proba, labels=[0, 1])

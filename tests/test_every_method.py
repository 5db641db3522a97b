"""Every method on real silos: what is finished is kept, and the page is written from the report."""

import json
import re
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

import confrere as cf
from confrere.cli import reproduce
from confrere.reproduce import every_method as study
from confrere.reproduce.hospitals import Setting

from .study_helpers import small_silos

BENCH = Path(__file__).resolve().parents[1] / "bench"


def dealt(first: int, seed: int) -> cf.Silos:
    return small_silos(seed=first).split(test=0.5, seed=seed)


@pytest.fixture
def few(monkeypatch):
    """Two methods in two small settings."""
    monkeypatch.setattr(study, "NAMES", ("local",))
    monkeypatch.setattr(study, "REAL_CELLS", tuple(Setting(name, partial(dealt, k)) for k, name in enumerate("ab")))
    whole = study.methods
    monkeypatch.setattr(study, "methods", lambda: {n: m for n, m in whole().items() if n in ("ridge_local", "local")})


@pytest.mark.usefixtures("few")
def test_a_run_that_is_cut_off_goes_on_and_a_finished_one_is_found(tmp_path):
    class CutOff(Exception):
        pass

    def stop_in_the_second_setting(done, total):
        if done > total / 2:
            raise CutOff

    with pytest.raises(CutOff):
        study.every_method(3, stop_in_the_second_setting, tmp_path)
    kept = len(list(tmp_path.glob("*.json")))
    assert 2 * 3 * 3 <= kept < 2 * 2 * 3 * 3  # methods, users, splits: the first setting, not all of both
    whole = study.every_method(3, store=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2 * 2 * 3 * 3
    heard = []
    again = study.every_method(3, lambda *counts: heard.append(counts), tmp_path)
    assert again["settings"] == whole["settings"]
    assert heard == []


@pytest.mark.usefixtures("few")
def test_the_command_keeps_cells_and_the_page_has_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "start_jax", lambda: None)  # it has started
    words = ["methods", "--seeds", "3", "--store", str(tmp_path / "cells"), "--json"]
    done = CliRunner().invoke(reproduce.app, words)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert set(report["settings"]) == {"a", "b"}
    assert len(list((tmp_path / "cells").glob("*.json"))) == 2 * 2 * 3 * 3
    found = report["settings"]["b"]["local"]
    assert set(found) == {"log_loss", "accuracy", "auroc"}
    for metric in found.values():
        assert metric["low"] < metric["difference"] < metric["high"]

    monkeypatch.syspath_prepend(str(BENCH))
    from methods_page import write

    (tmp_path / "report.json").write_text(done.stdout)
    write(tmp_path / "report.json", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert page.count("\n## ") == 2
    assert f"| `local` | {found['log_loss']['mean']:.4f} | {found['log_loss']['difference']:+.4f} [" in page
    lines = [line for line in page.split("## b")[1].splitlines() if line.startswith("| `")]
    losses = [float(line.split("|")[2]) for line in lines]
    assert losses == sorted(losses)
    assert len(losses) == 2


def test_the_page_on_choosing_has_the_numbers_of_the_run():
    settings = json.loads((BENCH / "methods.json").read_text())["settings"].values()
    losses = [{name: found["log_loss"]["mean"] for name, found in of.items()} for of in settings]
    page = (BENCH.parent / "docs" / "choosing.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(\w+)`[^|]*" + 3 * r"\| ([\d.]+) \((\d+)\w\w\) " + r"\|$", page, re.MULTILINE)
    assert len(shown) == 11
    for name, *told in shown:
        for of, loss, place in zip(losses, told[::2], told[1::2], strict=True):
            assert (f"{of[name]:.3f}", sorted(of, key=of.__getitem__).index(name) + 1) == (loss, int(place)), name


def test_there_is_a_row_for_every_algorithm():
    left_out = {"fedsgd", "fedbn"}  # a method with one step, and one for normalisations
    left_out |= {"fedavg_prox", "gtv_async", "gtv_gd", "gtv_relax", "gtv_sgd"}  # those of networks
    names = {name.replace("evidence", "auto") for name in cf.algorithms.__all__}
    assert set(study.methods()) == names - left_out

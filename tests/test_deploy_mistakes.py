"""Mistakes in a site's own files: the hub hears a few fixed words, and the site's operator reads what is true."""

import json

import jax
import pytest

from confrere.cli.deploy import words_of
from confrere.cli.site import Mistakes
from confrere.deploy.conduct import Refusal
from confrere.deploy.logbook import MOST, note_trouble, troubles
from confrere.deploy.rows import EMPTY, GONE, NEW_CLASS, NO_LABEL, NOT_MADE, UNREADABLE, UNTIDY
from tests.hospitals import SITES, approve, conduct, make_sites, study

SECRET = "Jane Doe"


@pytest.fixture(autouse=True)
def precision_as_before():
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def places(tmp_path):
    return make_sites(tmp_path)


def renamed(text: bytes) -> bytes:
    return text.replace(b"ill", SECRET.encode(), 1)


MISTAKES = {  # what becomes of the table -> what the hub is told, and what of the truth is named
    "no label": (renamed, NO_LABEL, "no label column 'ill'"),
    "empty": (lambda _: b"", EMPTY, "is empty"),
    "header alone": (lambda text: text.split(b"\n")[0] + b"\n", EMPTY, "has no rows"),
    "no text": (lambda _: b"\x89PNG\r\n\xff\x00" + SECRET.encode(), UNREADABLE, "not in UTF-8"),
    "no table": (lambda text: text + f"{SECRET},1,2,3,4,5\n".encode(), UNREADABLE, "6 fields"),
    "odd cell": (lambda text: text + f"{SECRET},1.0,A,yes\n".encode(), UNTIDY, SECRET),
}


def opened(places, asked, folder) -> dict:
    """The line of the journal that says who takes part, after a whole run."""
    run = conduct(places, asked, folder)
    assert run.whole()["event"] == "finished"
    return next(line for line in run.journal.lines() if line["event"] == "opened")


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_table_is_told_in_fixed_words_and_the_truth_stays_with_its_operator(
    mistake, places, tmp_path, caplog
):
    change, told, truth = MISTAKES[mistake]
    asked, table = study(), places["elm"] / "patients.csv"
    approve(places, asked)
    table.write_bytes(change(table.read_bytes()))
    line = opened(places, asked, tmp_path / "hub")
    assert line["refuses"] == {"elm": [told]}
    assert words_of(line, SITES, 10)[1] == f"  elm does not: {told}"
    assert not any(SECRET.encode() in file.read_bytes() for file in (tmp_path / "hub").rglob("*") if file.is_file())
    noted = troubles(places["elm"])[-1]
    assert (noted["study"], noted["told"]) == (asked.hash, told)
    assert str(table) in noted["truth"]
    assert truth in noted["truth"]
    assert noted["truth"] in caplog.text


def test_a_table_that_is_gone_is_told_so(places, tmp_path):
    asked = study()
    approve(places, asked)
    (places["elm"] / "patients.csv").unlink()
    assert opened(places, asked, tmp_path / "hub")["refuses"] == {"elm": [GONE]}


def test_a_mistake_in_the_sites_own_file_is_told_so(places, tmp_path):
    asked = study()
    approve(places, asked)
    file = places["elm"] / "site.toml"
    file.write_text(file.read_text() + f"max_rounds = '{SECRET}'\n")
    assert opened(places, asked, tmp_path / "hub")["refuses"] == {"elm": ["its site.toml has a mistake"]}
    assert "policy.max_rounds" in troubles(places["elm"])[-1]["truth"]


def test_a_column_that_cannot_be_made_is_told_so(places, tmp_path):
    asked = study(more="[derive]\nrate = 'dose / age'")
    approve(places, asked)
    table = places["elm"] / "patients.csv"
    table.write_text(table.read_text().replace("dose", "quantity", 1))
    assert opened(places, asked, tmp_path / "hub")["refuses"] == {"elm": [NOT_MADE]}


def test_a_class_that_came_after_round_one_is_told_so(places, tmp_path):
    asked = study()
    approve({name: places[name] for name in SITES if name != "elm"}, asked)
    lines: list[dict] = []
    conduct(places, asked, tmp_path / "hub").whole(lines.append, stop=lambda: "stopped" if lines else None)
    approve(places, asked)
    table = places["elm"] / "patients.csv"
    table.write_text(table.read_text().replace(",yes\n", f",{SECRET}\n"))
    run = conduct(places, asked, tmp_path / "hub")
    assert run.whole()["event"] == "finished"
    assert run.opening is not None
    assert run.opening.refuses == {"elm": [NEW_CLASS]}


def test_a_column_of_another_kind_is_told_with_who_has_it_and_what_settles_it(places, tmp_path):
    asked = study()
    approve(places, asked)
    table = places["elm"] / "patients.csv"
    rows = table.read_text().splitlines()
    table.write_text(
        "\n".join([rows[0], *(f"{'young' if k % 2 else 'old'}{row[4:]}" for k, row in enumerate(rows[1:]))])
    )
    run = conduct(places, asked, tmp_path / "hub")
    with pytest.raises(Refusal, match="elm: its column 'age' is categorical, but numeric at ash, birch, cedar"):
        run.whole()
    line = run.journal.lines()[-1]
    said = "record it alike, or name it in categorical, numeric or drop of [data] in the study's file"
    shown = f"elm does not take part: its column 'age' is categorical, but numeric at ash, birch, cedar: {said}"
    assert words_of(line, SITES, 10) == [shown]


def test_tables_that_hold_one_class_alone_do_not_go_together(places, tmp_path):
    asked = study()
    approve(places, asked)
    for place in places.values():
        table = place / "patients.csv"
        table.write_text(table.read_text().replace(",yes\n", ",no\n"))
    run = conduct(places, asked, tmp_path / "hub")
    with pytest.raises(Refusal):
        run.whole()
    [shown] = words_of(run.journal.lines()[-1], SITES, 10)
    assert shown.startswith("the tables do not go together: the label 'ill' has only one class")


def test_an_operator_is_shown_every_new_mistake_once(tmp_path, capsys):
    note_trouble(tmp_path, "ab" * 32, "an old one", "seen before the site was started")
    mistakes = Mistakes(tmp_path, json=False)
    mistakes.show_new()
    assert capsys.readouterr().out == ""
    for _ in range(3):
        note_trouble(tmp_path, "cd" * 32, "its table cannot be read", "patients.csv is not in UTF-8")
        mistakes.show_new()
    assert capsys.readouterr().out == (
        "Study cdcdcdcdcdcd: patients.csv is not in UTF-8 (the hub was told: its table cannot be read)\n"
    )
    mistakes.json = True
    note_trouble(tmp_path, "cd" * 32, "its table is gone", "there is no patients.csv")
    mistakes.show_new()
    assert json.loads(capsys.readouterr().out)["truth"] == "there is no patients.csv"


def test_an_operators_record_of_troubles_does_not_grow_without_end(tmp_path):
    for number in range(2 * MOST):
        note_trouble(tmp_path, "ab" * 32, "its table cannot be read", f"line {number}")
    assert len(troubles(tmp_path)) == MOST
    assert troubles(tmp_path)[-1]["truth"] == f"line {2 * MOST - 1}"

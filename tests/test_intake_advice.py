"""Columns that look wrong are named: those that know too much, dates, texts, identifiers, constants, codes."""

import numpy as np
import pandas as pd
import pytest

import confrere as cf
from confrere.data import DataWarning
from confrere.data.choose import Choice, chosen_silos
from confrere.data.intake import messages
from confrere.data.intake.messages import Distance, Looks


def table(rows=200, seed=0, **columns):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    made = {name: make(rng, y) for name, make in columns.items()}
    return pd.DataFrame({"x": rng.normal(size=rows)} | made | {"y": y, "s": rng.choice(["a", "b"], rows)})


def load(given, **options):
    return cf.Silos.from_table(given, label="y", silo="s", **options)


LEAKS = {
    "number": lambda rng, y: y * 10 + rng.normal(size=len(y)),
    "falling": lambda rng, y: -y * 10 + rng.normal(size=len(y)),
    "level": lambda rng, y: np.where(y == 1, rng.choice(["p", "q"], len(y)), rng.choice(["r", "t"], len(y))),
    "gap": lambda rng, y: np.where(y == 1, np.nan, rng.normal(size=len(y))),
    "nearly": lambda rng, y: np.where(rng.random(len(y)) < 0.01, 1 - y, y),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_column_that_tells_the_label_is_kept_and_warned_about_by_silo(leak):
    with pytest.warns(DataWarning, match="alone tells the label almost perfectly") as told:
        silos = load(table(leak=LEAKS[leak]))
    texts = [str(w.message) for w in told]
    assert len(texts) == 2
    assert all(f"silo {s!r}: column 'leak'" in text for s, text in zip("ab", texts, strict=True))
    assert any(name.startswith("leak") for name in silos.feature_names)
    assert all(w.filename == __file__ for w in told)


def test_a_leak_in_one_silo_is_warned_about_there():
    given = table(leak=LEAKS["number"])
    given.loc[given["s"] == "a", "leak"] = np.random.default_rng(1).normal(size=(given["s"] == "a").sum())
    with pytest.warns(DataWarning, match=r"^silo 'b': column 'leak'") as told:
        load(given)
    assert len(told) == 1


def test_a_good_but_honest_column_is_not_warned_about():
    silos = load(table(good=lambda rng, y: y * 2 + rng.normal(size=len(y))))
    assert silos.notes == ()


def test_rare_labels_and_small_silos_give_no_false_alarm():
    for seed in range(5):
        load(table(rows=50, seed=seed))
    given = table()
    given["y"] = (np.arange(200) == 5) | (np.arange(200) == 90)
    load(given)


def test_a_copy_of_a_numeric_label_is_warned_about():
    given = table()
    given["y"] = np.random.default_rng(1).normal(size=200)
    given["double"] = 2 * given["y"] + 1
    with pytest.warns(DataWarning, match="column 'double' alone tells the label") as told:
        load(given)
    assert len(told) == 2


def test_a_copy_of_a_label_with_several_classes_is_warned_about():
    given = table()
    given["y"] = np.random.default_rng(1).choice(["u", "v", "w"], 200)
    given["code"] = given["y"].map({"u": 5, "v": 1, "w": 3})
    with pytest.warns(DataWarning, match="column 'code' alone tells the label"):
        load(given)


@pytest.mark.parametrize("written", ["dates", "iso", "points"])
def test_dates_are_left_out_with_a_hint(written):
    days = pd.date_range("2020-01-01", periods=200)
    text = {"dates": days, "iso": days.strftime("%Y-%m-%d"), "points": days.strftime("%d.%m.%Y")}[written]
    with pytest.warns(DataWarning, match="column 'day' holds dates and is left out: derive a number"):
        silos = load(table().assign(day=text))
    assert silos.feature_names == ("x",)


@pytest.mark.parametrize("kind", ["names", "notes"])
def test_free_text_is_left_out(kind):
    rng = np.random.default_rng(0)
    texts = {
        "names": [f"name {i}" for i in range(200)],
        "notes": rng.choice([f"note {i}" for i in range(150)], 200),
    }[kind]
    with pytest.warns(DataWarning, match="column 'text' has nearly as many values as rows"):
        silos = load(table().assign(text=texts))
    assert silos.feature_names == ("x",)
    assert "note" not in str(silos.shared)


def test_free_text_in_one_silo_keeps_the_other_silos_words_in_too():
    given = table().assign(text="same")
    given.loc[given["s"] == "b", "text"] = [f"n{i}" for i in range((given["s"] == "b").sum())]
    with pytest.warns(DataWarning, match="column 'text' has nearly as many values"):
        silos = load(given)
    assert not [e for e in silos.shared if "text" in e.what]


def small_silos(silos, rows, values):
    """Silos of a few rows each, with a column of the given values."""
    count = silos * rows
    numbers = np.random.default_rng(0).normal(size=count)
    names = np.repeat([f"s{i:02d}" for i in range(silos)], rows)
    return pd.DataFrame({"x": numbers, "text": values, "y": np.arange(count) % 2, "s": names})


@pytest.mark.parametrize(("silos", "rows"), [(2, 5), (3, 9), (6, 4), (20, 2), (30, 1), (12, 2), (2, 4), (1, 9)])
def test_identifiers_are_left_out_however_small_the_silos_are_and_stay_where_they_are(silos, rows):
    values = [f"patient {i}" for i in range(silos * rows)]
    with pytest.warns(DataWarning, match="column 'text' has nearly as many values as rows"):
        found = load(small_silos(silos, rows, values))
    assert found.feature_names == ("x",)
    said = [entry for entry in found.shared if "'text'" in entry.what]
    assert {(e.what, e.count) for e in said} == {("number of known and of different values of 'text'", 2)}
    assert "patient" not in str(found.shared)


def test_an_identifier_may_occur_twice():
    values = [f"patient {i}" for i in range(48)]
    values[1] = values[0]
    with pytest.warns(DataWarning, match="column 'text' has nearly as many values as rows"):
        assert load(small_silos(8, 6, values)).feature_names == ("x",)


@pytest.mark.parametrize(("silos", "rows", "levels"), [(20, 2, 2), (30, 3, 4), (6, 4, 5), (50, 9, 50), (1, 9, 8)])
def test_categories_of_small_silos_remain_features(silos, rows, levels):
    values = np.random.default_rng(1).permutation([f"level {i % levels}" for i in range(silos * rows)])
    assert len(load(small_silos(silos, rows, values)).feature_names) == 1 + (levels if levels > 2 else 1)


def test_a_silo_that_knows_the_levels_speaks_for_those_with_few_rows():
    given = small_silos(6, 4, [f"level {i}" for i in range(24)])
    more = pd.DataFrame({"x": 0.5, "text": [f"level {i % 4}" for i in range(40)], "y": np.arange(40) % 2, "s": "big"})
    assert "text=level 3" in load(pd.concat([given, more])).feature_names


def test_small_silos_keep_a_column_that_is_named_as_a_category():
    found = load(small_silos(6, 4, [f"level {i}" for i in range(24)]), categorical="text")
    assert len(found.feature_names) == 25
    assert not [e for e in found.shared if "different" in e.what]


def test_a_category_with_many_values_can_be_insisted_on():
    given = table().assign(ward=[f"ward {i % 120}" for i in range(200)])
    with pytest.warns(DataWarning, match="column 'ward' has 120 levels and becomes as many features"):
        silos = load(given, categorical="ward")
    assert len(silos.feature_names) == 121


def test_row_numbers_are_warned_about():
    with pytest.warns(DataWarning, match="column 'id' counts up or down from row to row") as told:
        load(table().assign(id=np.arange(200) + 1000))
    assert len(told) == 2


def test_an_empty_column_is_left_out():
    with pytest.warns(DataWarning, match="column 'none' has no known value in any silo and is left out"):
        assert load(table().assign(none=np.nan)).feature_names == ("x",)


def test_a_constant_category_is_left_out():
    with pytest.warns(DataWarning, match="column 'k' has the same value in all rows and is left out$"):
        assert load(table().assign(k="v")).feature_names == ("x",)


def test_codes_are_noted_and_not_warned_about():
    rng = np.random.default_rng(7)
    silos = load(
        table().assign(code=rng.integers(1, 5, 200), yes=rng.integers(0, 2, 200), dose=rng.choice([1, 1.5, 2], 200))
    )
    assert silos.notes == (
        "column 'code' has a few whole numbers only; if they are codes, name it in categorical (--categorical code)",
    )


CODES = "column 'code' has a few whole numbers only; if they are codes, name it in categorical (--categorical code)"


def test_a_silo_with_more_values_says_that_there_are_no_codes():
    given = table(rows=80).assign(code=np.arange(80) % 3)
    assert load(given).notes == (CODES,)
    given.loc[given["s"] == "b", "code"] = np.arange((given["s"] == "b").sum()) % 7
    assert load(given).notes == ()


def two_silos(first, second):
    """A column `lab` with the given values in the silos a and b."""
    rows = len(first) + len(second)
    numbers = np.random.default_rng(0).normal(size=rows)
    names = ["a"] * len(first) + ["b"] * len(second)
    return pd.DataFrame({"x": numbers, "lab": [*first, *second], "y": np.arange(rows) % 2, "s": names})


def zeros_noted(given):
    return [note.split(" rows")[0] for note in load(given).notes if "far from all other values" in note]


FAR = np.random.default_rng(3).permutation(100 + np.arange(40.0))
NEAR = np.random.default_rng(4).permutation(1 + np.arange(40.0))
ZEROS = np.zeros(8)


def test_zeros_are_judged_by_the_values_of_their_own_silo():
    assert zeros_noted(two_silos([*ZEROS, *FAR], NEAR)) == ["silo 'a': column 'lab' is 0 in some"]
    assert zeros_noted(two_silos([*ZEROS, *NEAR], FAR)) == []
    assert zeros_noted(two_silos([*ZEROS, 120, 130, 140], FAR)) == []
    assert zeros_noted(two_silos([*ZEROS[:4], *FAR], FAR)) == []


def test_a_silo_with_nothing_but_zeros_learns_from_the_others_whether_that_is_odd():
    assert zeros_noted(two_silos(ZEROS, FAR)) == ["silo 'a': column 'lab' is 0 in all"]
    assert zeros_noted(two_silos(ZEROS, NEAR)) == []
    asked = [(e.silo, e.what, e.count) for e in load(two_silos(ZEROS, FAR)).shared if "far from 0" in e.what]
    assert asked == [(s, "whether values other than 0 are many and far from 0 in 'lab'", 1) for s in "ab"]
    assert not [e for e in load(two_silos([*ZEROS, *FAR], FAR)).shared if "far from 0" in e.what]


@pytest.mark.parametrize("code", [-9, -99, -999, 999, 9999])
def test_codes_for_gaps_are_judged_by_the_values_of_their_own_silo(code):
    usual = np.random.default_rng(1).normal(130, 15, 60).round()
    given = two_silos([*usual, *[code] * 5], usual)
    assert [note for note in load(given).notes if "--missing" in note] == [
        f"silo 'a': column 'lab' is {code} in some rows, far from all other values: if that means that it was not "
        f"taken, say so with missing={{'lab': [{code}]}} (--missing lab={code})"
    ]
    assert not [note for note in load(two_silos([*usual, *[code] * 4], usual)).notes if "--missing" in note]
    assert not [note for note in load(two_silos([*[120, 130] * 8, *[code] * 5], usual)).notes if "--missing" in note]


@pytest.mark.parametrize("code", [-9, 99, 999])
def test_a_silo_with_nothing_but_a_code_for_gaps_is_told_so(code):
    usual = np.random.default_rng(1).normal(130, 15, 60).round()
    assert [note for note in load(two_silos([code] * 5, usual)).notes if "--missing" in note] == [
        f"silo 'a': column 'lab' is {code} in all rows, a usual code for gaps: if that means that it was not "
        f"taken, say so with missing={{'lab': [{code}]}} (--missing lab={code})"
    ]
    two = [note for note in load(two_silos([code] * 6 + [888] * 5, usual)).notes if "--missing" in note]
    assert sum("rows, a usual code for gaps" in note for note in two) == len(two) == 2
    assert not [note for note in load(two_silos([code] * 4, usual)).notes if "--missing" in note]
    assert not [note for note in load(two_silos([100] * 5, usual)).notes if "--missing" in note]


def test_repeated_numbers_among_others_are_no_codes_for_gaps():
    ages = np.r_[np.arange(18, 97), [99] * 6, [77] * 6]
    assert not [note for note in load(two_silos(ages, ages)).notes if "--missing" in note]


def test_zeros_are_found_beside_codes_for_gaps():
    both = [*[-999] * 5, *[888] * 5, *[0] * 5, *np.arange(100.0, 160.0)]
    notes = [note for note in load(two_silos(both, FAR)).notes if "--missing" in note]
    assert [note.partition(" is ")[2].split()[0] for note in notes] == ["0", "888", "-999"]


@pytest.mark.parametrize("name", ["titanic", "heart_disease", "breast_cancer", "diabetes"])
def test_the_data_sets_with_a_name_have_no_codes_for_gaps(name, shared_data):
    assert not [note for note in chosen_silos(Choice((name,))).notes if "far from all other values" in note]


def test_advice_on_several_silos_rests_on_their_messages_alone(monkeypatch):
    def no(message):
        if isinstance(message, Distance):
            return message._replace(far=dict.fromkeys(message.far, False))
        return message._replace(codes=dict.fromkeys(message.codes, False)) if isinstance(message, Looks) else message

    given = two_silos(ZEROS, FAR).assign(code=np.arange(48) % 3)
    assert CODES in load(given).notes
    assert zeros_noted(given)
    monkeypatch.setattr(messages, "gather", lambda sent: tuple(map(no, sent)))
    assert load(given).notes == ()


def test_classes_with_several_spellings_are_warned_about():
    given = table()
    given["y"] = np.random.default_rng(1).choice(["Yes", "yes", " yes", "no", "not  known", "Not known"], 200)
    with pytest.warns(DataWarning, match="the label 'y' has classes that differ only in case or blanks") as told:
        silos = load(given)
    assert silos.label_names == ("Not known", "Yes", "no", "not  known", "yes")
    assert [str(w.message).split(", ")[1] for w in told] == [
        "'Not known' and 'not  known': spell them alike if they are one",
        "'Yes' and 'yes': spell them alike if they are one",
    ]
    assert set(silos.notes) >= {str(w.message) for w in told}


def test_names_that_look_alike_are_noted():
    rng = np.random.default_rng(7)
    silos = load(table().assign(**{"Age ": rng.normal(size=200), "age": rng.normal(size=200)}))
    assert silos.notes == ("columns 'Age' and 'age' look like one column: rename one if so",)


def test_classes_guessed_from_numbers_are_noted():
    given = table()
    given["y"] = np.random.default_rng(1).integers(0, 5, 200)
    assert load(given).notes == (
        "the label 'y' is taken as 5 classes; for numbers say task='regression' (--task regression)",
    )


def test_numbers_guessed_from_a_label_with_points_are_noted():
    given = table()
    given["y"] = np.where(np.arange(200) % 3, 0.5, 1.5)
    assert load(given).notes == (
        "the label 'y' is taken as numbers; for classes say task='classification' (--task classification)",
    )
    assert load(given, task="regression").notes == ()


def test_a_split_warns_no_more_but_notes_what_its_training_rows_show():
    given = table(rows=60)
    given["rare"] = (np.arange(60) == 7).astype(float)
    silos = load(given)
    parts = [np.where(given[given["s"] == s.name].index == 7, 2, 0) for s in silos.silos]
    later = silos.with_parts(parts)
    assert later.feature_names == ("x", "rare")
    assert later.notes == ("no training row shows rare: zero in all rows",)


def test_silos_that_differ_only_in_case_are_named():
    given = table().replace({"s": {"a": "north", "b": "NORTH"}})
    with pytest.warns(DataWarning, match="silos that differ only in case or blanks, 'NORTH' and 'north': spell them"):
        load(given)


def test_hints_say_what_to_write_on_the_command_line():
    given = table(leak=lambda rng, y: y, kind=lambda rng, y: rng.integers(0, 4, len(y)))
    with pytest.warns(DataWarning, match=r"name it in drop \(--drop leak\)"):
        silos = load(given)
    assert any(note.endswith("name it in categorical (--categorical kind)") for note in silos.notes)
